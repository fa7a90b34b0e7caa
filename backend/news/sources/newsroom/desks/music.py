# ruff: noqa: E501 (prose reads better unbroken)
"""The music desk: albums, concerts, festivals, the concert hall, the trade and its quarrels."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Desk, Scene, Stage, say
from backend.news.sources.newsroom.desks.music_acts import (
    CLASSICAL,
    QUARRELS,
    Act,
    Programme,
    Quarrel,
    acts,
    title_of,
    titles,
)
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import EVENING, LEISURE, OFFICE
from backend.news.sources.newsroom.world import Country, Money


def _acts(scene: Scene) -> tuple[Act, ...]:
    return scene.world.kept("music acts", lambda: acts(scene.world))


@dataclass(frozen=True)
class Album:
    act: Act
    title: str
    song: str
    closer: str
    weak: str
    guest: Person
    producer: Person
    tracks: int
    minutes: int
    nth: int
    stars: int
    years: int
    good: str | None
    mixed: str | None
    studio: str
    theme: str
    sound: str
    praise: str
    fault: str


_THEMES = (
    "leaving a small town and missing it",
    "a father's last year",
    "the first winter after a divorce",
    "night shifts",
    "a flooded valley",
    "learning to be forty",
    "letters that were never posted",
    "the end of a long friendship",
    "insomnia",
    "a grandmother's kitchen",
    "cities seen from trains",
    "giving up drink",
    "becoming a parent",
    "emigration",
)
_STUDIOS = (
    "a disused chapel",
    "a fisherman's hut",
    "a borrowed flat above a bakery",
    "three bedrooms in three countries",
    "a radio studio at night",
    "a barn with a leaking roof",
    "an old swimming bath",
    "the back room of a piano shop",
    "a lighthouse",
    "a school gymnasium in the holidays",
)
_PRAISE = (
    "the tunes arrive late and stay for days",
    "every instrument has room to breathe",
    "the voice has dropped a tone and gained a world",
    "nothing is underlined and everything is heard",
    "the rhythm section plays as if it were one animal",
    "the quiet songs are the loud ones",
    "it wears its learning lightly",
    "there is a joke in every bridge",
    "the arrangements know when to stop",
    "one hears the room and everyone in it",
    "small sounds do large things",
    "the tempo is never what you expect and always right",
    "grief and mischief share a verse",
    "the harmonies turn corners",
)
_FAULTS = (
    "the middle sags",
    "two ballads in a row are one too many",
    "the drums are mixed like furniture",
    "the lyrics lean on the weather",
    "the last third repeats the first",
    "the choruses are better than the verses",
    "the singer is mixed too low",
    "one clever idea is used four times",
    "the slow songs are slower than they need to be",
    "the joke in the middle is told twice",
    "the bass is mostly rumour",
    "the spoken passages add little",
    "it is a single too long",
    "the strings come in whenever feeling is wanted",
)


def _album(scene: Scene) -> Album:
    act = scene.fresh("album", _acts(scene))
    stars = scene.pick((2, 3, 3, 4, 4, 4, 5))
    title, song, closer, weak = titles(scene.rng, 4)
    return Album(act, title, song, closer, weak, scene.person(None), scene.person(None, "the producer"), scene.between(9, 14), scene.between(34, 58), scene.between(2, 7), stars, scene.between(2, 6),
                 "" if stars >= 4 else None, None if stars >= 4 else "", scene.pick(_STUDIOS), scene.pick(_THEMES), scene.pick(act.genre.sounds), scene.pick(_PRAISE), scene.pick(_FAULTS))  # fmt: skip


ALBUM = Beat(
    "album reviews",
    _album,
    (
        Stage(
            titles=("{act.name}: {title} review – {act.genre.name} album about {theme}", "Album review: {act.name} turn {theme} into {act.genre.name}", "{title} by {act.name}: {stars} stars for {act.genre.name} album", "{act.name} find {sound} on {title}", "{good}On {title}, {act.name} make their best {act.genre.name} record yet", "{mixed}{title}: {act.name} album has {sound} and too few songs"),
            abstracts=("The {nth:ord} album by the {act.city.name} {act.genre.noun} is about {theme}. Rating: {stars} out of five.", "Recorded in {studio}, {title} has {sound} and a fine guest in {guest.name}.", "{good}At its best, {praise}. {act.name} return after {years} years.", "{mixed}There is {sound}, but {fault}."),
            leads=("{act.name} made their {nth:ord} album in {studio}, and you can hear it. {title} is a {act.genre.name} record about {theme}, {minutes} minutes long and [in no hurry|over before you expect it].", "It has taken {act.name} {years} years to follow their last record. {title}, {tracks} songs about {theme}, explains some of the delay.", "“We had a rule: no song about {theme},” says {act.singer.name} of {act.name}. The {tracks} songs on {title} break it from the first line.", "There is {sound} all over {title}, the {nth:ord} album by {act.name}, and it suits them."),
            then=(say(
                    "The single, {song}, [opens with|is built on] {sound}; {closer}, which ends the record, [does without it|lets it go]. In between, {praise}.",
                    "Start with {song}. It has {sound}, and a chorus that [refuses to resolve|turns up a bar early]. After that {praise}.",
                    "The best of it is {song}, [four minutes of|all] {sound}. On {closer}, the last track, {praise}.",
                    "{song} comes first and [sets the tone|does the explaining]: {sound}, few words. By the time {closer} arrives, {praise}.",
                    "What holds the {tracks} songs together is the sound: {sound}, from {song} at the start to {closer} at the end. At its best, {praise}.",
                ), say(
                    "{good}If there is a weakness, it is that {fault}. It hardly matters.",
                    "{good}Some will say that {fault}. [Let them|They may be right, and it changes nothing].",
                    "{good}Only once, around {weak}, does one notice that {fault}.",
                    "{good}True, {fault}[; {closer} makes up for it|, but by the end one has forgiven it].",
                    "{good}Nothing here is wasted, unless one minds that {fault}.",
                    "{mixed}The trouble is that {fault}. {weak} could go, and nobody would miss it.",
                    "{mixed}And yet {fault}. By {weak} one is looking at the clock.",
                    "{mixed}There are good ideas and too few of them, and {fault}. {weak} is [a sketch|an idea in search of a tune].",
                    "{mixed}A stricter hand would have cut {weak}. As it is, {fault}.",
                )),
            loose=(say(
                    "{guest.name} sings on {closer}[, a duet recorded in one take|, and steals it|, a third higher than you expect].",
                    "A guest, {guest.name}, [turns up|adds a second voice] on {song}[, and one would have liked more of it|].",
                    "On {closer} the band [hands over to|makes room for] {guest.name}, who [whispers|half speaks] the verses.",
                    "The voice you don't recognise, on {song}, is that of {guest.name}, [a neighbour|an old school friend|met on a train].",
                ), say(
                    "{producer.name}, who produced it, [kept the microphones far away|took things out rather than putting them in|let the tape run]. “[My job was to leave the room|They play better when they think it is a rehearsal|The mistakes were the only parts that nobody had planned, so we kept them],” {producer.he} says.",
                    "“[We had nine days and used six|Half of it is the sound of the building|I asked for one more take exactly once],” says {producer.name}, the producer.",
                    "The producer, {producer.name}, [banned headphones|had the band play facing the wall|recorded everything after dark], and it [helped|shows].",
                    "It was recorded in {studio} with {producer.name}, who [has made quieter records|usually works with singers twice as loud].",
                ), say(
                    "{act.singer.last} wrote most of the words [on trains|in a notebook that was lost and found|in one week in February]. “[I used to hide behind the band, now I hide in the songs|If a line made me blush, it stayed|I don't think songs are about things, but this one is],” {act.singer.he} says.",
                    "“[It is not a diary; diaries have dates|I sang it to my sister first, which was a mistake|Nobody in the band has asked me what it means, and I'm grateful],” {act.singer.last} says of {song}.",
                    "Asked about {theme}, {act.singer.last} [shrugs|laughs]. “[You write what is on the table|It was that or a record about the van],” {act.singer.he} says.",
                    "“[We argued about every bar line|The drummer wanted it slower, and the drummer was right|We threw away nine songs and I still dream of two of them],” {act.singer.last} says.",
                ),
                   say(
                    "{act.name} come from {act.city.name} and have been playing together for {act.years} years.",
                    "The band was formed in {act.city.name} {act.years} years ago[, and no member has left|].",
                    "In {act.city.name}, where they began {act.years} years ago, {act.name} [still rehearse in a cellar|are stopped in the street].",
                ), say("A tour begins [next month|in the spring] in {act.city.name}.", "{act.name} take the record on tour [next month|this season], starting at home in {act.city.name}.", "It is out now[, on vinyl too|]; concerts follow."), say(
                    "{good}Play it [in the evening, with the window open|twice, the second time loud|on a long drive].",
                    "{good}It is {minutes} minutes long, and one [starts again at once|wishes for five more].",
                    "{mixed}[Fans|Those who loved the last one] will find enough to like; [others|newcomers] can [wait for the tour|start with the earlier records].",
                    "{mixed}Keep {song}, [and let the rest go|and perhaps {closer}]; [the band has done better|there will be another record].",
                    "{mixed}On stage, with the volume up, it may [grow|come alive]. At home it is [wallpaper of a good make|a record to put on while cooking].",
                    "{mixed}Half of these {tracks} songs would have made a [fine|splendid] short record.",
                )),
            weight=0.25, covered=0.1,
        ),
    ),
    share=1.0,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Show:
    act: Act
    city: City
    hall: str
    crowd: int
    songs: int
    opener: str
    encore: str
    fan: Person
    support: str
    trouble: str
    delight: str
    good: str | None
    mixed: str | None


def _show(scene: Scene) -> Show:
    act = scene.fresh("show", _acts(scene))
    good = scene.chance(0.7)
    support = scene.pick([other.name for other in _acts(scene) if other is not act])
    return Show(act, scene.pick(scene.country().cities), scene.pick(("the Corn Exchange", "the Old Fire Station", "the Arena", "the Tram Depot", "the Palace Theatre", "the Riverside Hall", "the Gasworks", "the Winter Garden")),
                scene.near(600, 14_000), scene.between(15, 24), title_of(scene.rng), f"{title_of(scene.rng)} Again", scene.person(None), support,
                scene.pick(("a power cut in the third song", "a broken string and no spare", "feedback that would not go away", "a monitor that hummed", "a runaway drum kit", "an accordion that lost a strap", "a singer with half a voice", "a leak above the keyboards", "an hour-long delay", "a missing bass player", "smoke from the fuse box")),
                scene.pick(("a brass section hidden in the balcony", "a cover of a lullaby", "a verse sung without a microphone", "a guitar solo that earned its length", "a choir of schoolchildren", "two songs sung in the dark", "a waltz for the ushers", "a duet with a man from the third row", "a bagpiper in the aisle", "a new song, played twice", "a medley of first singles", "a minute of silence that nobody broke", "a bass line taught to the whole hall", "a dance lesson before the encore")),
                "" if good else None, None if good else "")  # fmt: skip


SHOW = Beat(
    "concerts",
    _show,
    (
        Stage(
            titles=("{act.name} live in {city.name}: {act.genre.name} with {delight}", "Concert review: {act.name} at {hall}, {city.name}", "{good}{act.name} [delight|win over] {city.name} crowd with {songs}-song show", "{mixed}{act.name} concert in {city.name} survives {trouble}", "{act.singer.last} leads {act.name} through {songs} songs in {city.name}"),
            abstracts=("{trouble} and {delight}: {act.name} on stage.", "{good}A crowd of {crowd} heard {act.name} play {opener} first and {encore} last.", "{mixed}The {act.genre.noun} from {act.city.name} took half an hour to wake up.", "{act.name} brought their {act.genre.name} to {hall}."),
            leads=("{act.name} opened with {opener} at {hall} in {city.name} {on}, [before anybody had found their seat|with the house lights still up], and [did not look back|never quite let go].", "There was {trouble} at {hall} in {city.name} {on}, and [it was the best thing that could have happened to {act.name}|{act.name} played as if it had been planned|for {act.name} it turned into luck].",
                "{act.name} came to {city.name} {on} with {songs} songs and [a bus full of instruments|no set list|two new members], and left {hall} [in a better mood|humming].",
                "[Nobody|Hardly anybody] sat down at {hall} in {city.name} {on}. {act.name}, the {act.genre.noun} from {act.city.name}, saw to that.", "{mixed}For half an hour {on}, {act.name} played at {hall} in {city.name} as if in their sleep. Then came {delight}.", "Some {crowd} people squeezed into {hall} {on} to hear {act.name}, the {act.genre.noun} from {act.city.name}."),
            then=(say(
                    "{act.singer.last} [talks more than {act.singer.he} used to, and the songs need less explaining than {act.singer.he} thinks|hardly spoke, and let the songs do it|told a long story about a bus, and nobody minded]. “[We have been looking forward to this town|You are quieter than the last lot; I like it],” {act.singer.he} said.",
                    "“[This one is about {act.city.name}, so be kind|We wrote this one in a lay-by|My mother is here, so no swearing],” {act.singer.last} said before the [fourth|fifth|sixth] song.",
                    "The voice of {act.singer.last} was [hoarse at first and then glorious|in fine shape|better in the low notes than the high ones].",
                    "{act.singer.last} [came out with a cold and sang through it|sat on the edge of the stage for the slow songs|walked into the crowd and had to be passed back]. “[I can do this once a year|You have warm hands],” {act.singer.he} said.",
                    "There is no show to speak of: {act.singer.last} stands [still|to the left], and the band [plays|gets on with it].",
                ), say(
                    "The highlight for {city.name} was {delight}[, midway through the set|].",
                    "Then {city.name} got {delight}, and [phones went down|the bar emptied].",
                    "What {city.name} will remember is {delight}.",
                    "Late in the evening {city.name} was given {delight}[, which nobody had expected|].",
                )),
            loose=(say("The lights were [kept simple|no more than was needed]: [six bulbs and a curtain|two lamps and a lot of dark].", "Between songs, [a bottle of water went round|guitars were swapped like coats].", "The sound was [warm and a little too loud|clear up to the last row], and [nobody minded|so was the talk at the bar].", "Nobody spoke much from the stage: [a greeting, a thank-you|two jokes, one of them old]."), say(
                    "{fan.name}, who had [travelled five hours|seen them nineteen times], was hoarse by the end. “[They played the one I wanted|I cried at the wrong song],” {fan.he} said.",
                    "“[I only came to drive my daughter|I have their first single, the one with the misprint|It was louder than my wedding],” said {fan.name}, [in the queue for coats|at the exit].",
                    "{fan.name} had brought [three generations of the family|earplugs and did not use them]. “[My father said they can't sing, and then he stood up|Next time we sit further back],” {fan.he} said.",
                    "For {fan.name}, [a dentist|who works nights at a bakery|a student], it was a first concert. “[Why did nobody tell me?|My ears are ringing in the right key],” {fan.he} said.",
                ), say("{support}, who played first, [deserve a bill of their own|got an encore, which support acts don't].", "The evening had begun with {support}, [short and shy|who borrowed a drummer].", "{support} opened; [half the hall came late and missed something|by their last song the hall was full]."), say("They played {songs} songs and ended with {encore}.", "The encore was {encore}[, as it had to be|].", "After {songs} songs, the last of them {encore}, the lights went up.", "{encore} came last[, slower than on the record|]."), say("The sound was [clear even at the back|better downstairs than up]; the {act.genre.name} crowd [was of all ages|knew every word].", "As a room for {act.genre.name}, {hall} is [a little too grand|nearly ideal|all echo].", "The {act.genre.name} of {act.name} has [grown slower|gained a few notes] on this tour[, and it suits them|]."), say("The tour goes on [next week|for another month].", "There are [two|three] more concerts in {city.country}.", "A second night was added at once.", "From here the band goes [home to {act.city.name}|on by ferry].")),
            weight=0.22, covered=0.08,
        ),
    ),
    share=0.9,
    rhythm=EVENING,
)  # fmt: skip


@dataclass(frozen=True)
class Festival:
    name: str
    city: City
    c: Country
    first: Act
    second: Act
    third: Act
    director: Person
    guest: Person
    neighbour: Person
    days: int
    stages: int
    crowd: int
    price: Money
    nth: int
    place: str
    problem: str
    remedy: str


_FESTIVALS = (
    "Long Field", "Harbour Lights", "Low Tide", "Lantern", "Old Mill", "Northern Ear", "Open Barn", "Copper Beech", "Second Summer", "Salt and Strings", "Tin Roof", "Nightjar", "Quarry Sounds",
    "Slow Water", "Big Meadow", "Windfall", "Three Bridges", "Clear Air", "Green Door", "Railway Yard", "Hilltop", "Hay and Stars", "Loud Garden", "Estuary", "First Frost", "Half Moon",
    "Millpond", "Foghorn", "Kite", "Bonfire",
)  # fmt: skip


def _festival(scene: Scene) -> Festival:
    c = scene.country()
    city = scene.fresh("festival", c.cities)
    first, second, third = scene.sample(_acts(scene), 3)
    problem, remedy = scene.pick(
        (
            ("mud", "straw and wooden tracks"),
            ("a cancelled headliner", "a replacement found overnight"),
            ("noise complaints", "an earlier curfew"),
            ("a water shortage", "tankers from the next valley"),
            ("delays at the gates", "two more entrances"),
        )
    )
    return Festival(f"{scene.fresh('festival name', _FESTIVALS)} festival", city, c, first, second, third, scene.person(c), scene.person(c), scene.person(c),
                    scene.between(3, 5), scene.between(3, 7), scene.near(4_000, 48_000), scene.money(40, 95, c.currency), scene.between(4, 31), scene.pick(("a disused airfield", "the castle park", "an island in the river", "a former brickworks", "sloping meadows above the town")), problem, remedy)  # fmt: skip


FESTIVAL = Beat(
    "festivals",
    _festival,
    (
        Stage(
            titles=("{first.name} to headline {name} in {city.name}", "{name:cap} line-up: {first.name}, {second.name} and {third.name}", "{city.name}'s {name} announces {stages} stages and {first.name}"),
            abstracts=("The {nth:ord} edition lasts {days} days. {director.name}, who runs it, promises {stages} stages.", "{first.name} lead the bill in {city.name}; {crowd} visitors are expected."),
            leads=("{first.name}, {second.name} and {third.name} will top the bill of the {name} in {city.name}, the organisers said {on}.", "The {name}, held for the {nth:ord} time on {place} outside {city.name}, will be headlined by {first.name}."),
            then=(say("“[We booked what we would queue for|It is a bill for people who like arguing on the way home],” said {director.name}, the festival's director."),),
            loose=(say("A pass for {days} days costs {price}[, much as last year|; children pay half|].", "Tickets, at {price} for {days} days, go on sale [on the first of the month|to residents of {city.name} first].", "At {price}, a pass is [dearer than last year, and still a bargain|not cheap]; it covers all {stages} stages."), say("{second.name} play {second.genre.name}; {third.name}, from {third.city.name}, play {third.genre.name}."), say("The site is {place}. There will be {stages} stages and room for {crowd} people."), say("{neighbour.name}, who lives next to the site, [plans to be away|rents out a lawn to campers]. “[You get used to the bass|The rest of the year I have owls],” {neighbour.he} said."), say("Opening night is {t1:on}.")),
            weight=0.3, covered=0.2,
        ),
        Stage(
            titles=("{name:cap} opens in {city.name} with {first.name} and {problem}", "{first.name} open {name} in front of {crowd}", "Music and {problem}: first night at {name}"),
            abstracts=("{first.name} played as planned; {problem} did not stop them.", "{director.name} thanks {crowd} visitors and {remedy}."),
            leads=("The {name} began outside {city.name} {on} with {first.name}, about {crowd} people and {problem}.", "{first.name} opened the {nth:ord} {name} {on}. [By then|Before that] the talk had been of {problem}."),
            then=(say("[The organisers answered with|{director.last} had ordered|Help came in the form of] {remedy}. “[You plan for a year and then you improvise|Nothing that a shovel and a telephone can't mend],” said {director.name}, who runs it."),),
            loose=(say("{guest.name}, [here for the ninth time|who had cycled from {c.capital}], was content. “[I came for {second.name} and stayed for the soup|I have seen worse, and danced to it],” {guest.he} said."), say("{first.name} played for ninety minutes and [finished with a song nobody knew|left without an encore].", "The set by {first.name} [began an hour late|was loud, short and good]; the dancing went on [without them|in the car park]."), say("{second.name} and {third.name} are still to come."), say("On the smallest of the {stages} stages a brass band played to [forty people and a dog|a crowd of children]."), say("The festival lasts {days} days.")),
            after=(2, 4), weight=0.35, covered=0.2, rhythm=EVENING,
        ),
        Stage(
            titles=("{name:cap} ends in {city.name} after {days} days and {problem}", "{crowd} at {name}: what worked and what did not", "{third.name} close {name} in {city.name}"),
            abstracts=("{director.name} counts {crowd} visitors and promises a next edition.", "The best of {stages} stages: {second.name}, a brass band and a late set by {third.name}."),
            leads=("With a late set by {third.name}, the {name} in {city.name} came to an end {on}.", "The tents came down at the {name} {on} after {days} days, {crowd} visitors and {problem}."),
            then=(say("“[I am going to sleep for a week|We broke even and nobody broke a leg],” said {director.name}, who directs the festival."),),
            loose=(say("{second.name} gave [the performance of the festival|what many thought the best set]. “[You could hear the grass|I have never played to so many hats],” said {second.singer.name}, the singer."), say("By then {problem} had been forgotten[, or nearly|], thanks to {remedy}."), say("{neighbour.name}, a neighbour, said it had been [quieter than last year|fine, apart from the drums]."), say("Next year's dates are [to be announced|already fixed]."), say("{first.name} had opened the festival {t1:on}.")),
            after=(2.6, 3.6), weight=0.25,
        ),
    ),
    share=0.8,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Evening:
    c: Country
    city: City
    p: Programme
    conductor: Person
    soloist: Person
    critic: Person
    orchestra: str
    age: int
    ovation: int
    good: str | None
    mixed: str | None


def _evening(scene: Scene) -> Evening:
    c = scene.country()
    city = scene.fresh("concert hall", c.cities)
    good = scene.chance(0.7)
    return Evening(c, city, scene.deal("programme", CLASSICAL), scene.person(None), scene.person(None), scene.person(c), scene.pick(("{} Philharmonic", "{} Symphony", "{} Chamber Orchestra", "{} Radio Orchestra")).format(city.name),
                   scene.between(19, 33), scene.between(4, 11), "" if good else None, None if good else "")  # fmt: skip


HALL = Beat(
    "classical",
    _evening,
    (
        Stage(
            titles=("{orchestra} and {soloist.last} in {p.short}", "Classical: {conductor.last} conducts {p.short} in {city.name}", "{p.who:cap} {soloist.last}, {age}, [shines|impresses] in {p.short}", "{p.short:cap} in {city.name}: {p.verdict}", "{good}{ovation} minutes of applause for {soloist.last} and {orchestra}"),
            abstracts=("{conductor.name} and the {orchestra} play {p.work}; {p.verdict}.", "{soloist.name}, {age}, is the {p.who}. {p.detail}", "A concert in {city.name} with {p.work}."),
            leads=("The {orchestra} under {conductor.name} played {p.work} in {city.name} {on}, with {soloist.name} as the {p.who}.", "{soloist.name}, the {p.who}, is {age} and [looks younger|plays older]. In {p.work} {on}, with the {orchestra}, {p.verdict}.", "[Not a cough|Not a sound] was to be heard in {city.name} {on} when {soloist.name} [began|came to the slow movement]. The {orchestra} and {conductor.name} gave {p.work}.",
                "The main work was {p.work} when {conductor.name} conducted the {orchestra} in {city.name} {on}; {soloist.name} was the {p.who}.",
                "One went to hear {p.work} and came away talking of {soloist.name}. The {p.who}, {age}, appeared with the {orchestra} in {city.name} {on}.",
                "{conductor.name} gives few signs and the {orchestra} needs none. {on:cap} they played {p.work} in {city.name} with {soloist.name}, {age}."),
            then=(say("{p.detail}"), say("{good}{soloist.last} [took risks and got away with them|has a tone you could lean on]. {conductor.name}, who likes things brisk, [followed|let it breathe].", "{mixed}{soloist.last} seemed [nervous|oddly cool]; {conductor.name} pushed on [regardless|as if a train were waiting].")),
            loose=(say("“[I practise slowly and play fast, that is the whole secret|You must leave some of it to the hall|My teacher told me to imagine one listener, so I choose a face],” {soloist.last} said afterwards.",
                    "{soloist.last} [learned the piece in nine weeks|first heard it on a neighbour's radio]. “[I still have the wrong notes in my fingers, from when I was twelve|It frightens me less than it did],” {soloist.he} said.", "“[You never own it, you have the use of it for an evening|My hands know it, my head is only told],” said {soloist.last}, [out of breath|with a towel round {soloist.his} neck].", "For {soloist.last} it was [the first time in {city.name}|a return after six years]. “[I asked for water and was given wine, so I had to concentrate|A hall tells you in the first bar whether it likes you],” {soloist.he} said."), say("{critic.name}, who has subscribed for decades, [wiped {critic.his} glasses|was already humming]. “[I have heard it eleven times and never like that|The second half was worth the baby-sitter],” {critic.he} said.",
                    "In the interval, {critic.name}, a music teacher, [tried to explain it to {critic.his} class|counted {critic.his} pupils and was one short]. “[They asked why nobody clapped between the movements, and I had no answer|One of them wants to play the triangle, which is a start|Two are asleep and the rest want to know what a conductor earns|They listened, which they don't do for me],” {critic.he} said.",
                    "“[You could hear the rain on the roof, and it was in time|I came for the interval and forgot to go out],” said {critic.name}, on the way to the cloakroom."), say("{good}The applause lasted {ovation} minutes[; there was an encore, very short|]."), say("The horns [had a rough start|were superb]; the cellos [sang|dragged a little].", "Among the winds, the [oboe|flute|bassoon] [stood out|had the best of it]; the [trumpets|timpani] were [on their toes|a shade too keen].",
                    "The {orchestra} has [a new leader|lost four players this year], and [one can hear it|one would not know]."), say("The hall was [full|two-thirds full|fuller than in recent seasons]. The programme is repeated [next week|once].", "A recording [was made for the radio|is planned]. {conductor.name} returns in the spring.", "After the interval came [a short symphony|a suite of dances|an overture in the wrong place], [played neatly|played with more speed than thought|a little under-rehearsed|all smiles].")),
            weight=0.2, covered=0.06,
        ),
    ),
    share=0.9,
    rhythm=EVENING,
)  # fmt: skip


@dataclass(frozen=True)
class Dispute:
    act: Act
    q: Quarrel
    member: Person
    lawyer: Person
    fan: Person
    label: str
    sum: Money
    settled: str | None
    years: int
    song: str


def _dispute(scene: Scene) -> Dispute:
    act = scene.fresh("music dispute", _acts(scene))
    return Dispute(act, scene.fresh("music quarrel", QUARRELS, uses=2), scene.person(None), scene.person(None, "the band's lawyer"), scene.person(None), scene.pick(("Tallow Records", "Night Ferry", "Blue Gate Music", "Paper Moonlight", "Harrow Sound")),
                   scene.money(1.2e5, 4e6, act.country.currency), "" if scene.chance(0.6) else None, scene.between(3, 19), title_of(scene.rng))  # fmt: skip


DISPUTE = Beat(
    "music industry",
    _dispute,
    (
        Stage(
            titles=("{act.name} {q.head}", "Music: {act.name} {q.head}", "{act.genre.name:cap} band {act.name} {q.head}"),
            abstracts=("{q.why}. Their label, {label}, declined to comment.", "“{q.quote},” says {act.singer.name}.", "The {act.city.name} {act.genre.noun} {q.news}."),
            leads=("The {act.genre.noun} {act.name} {q.news}, {act.singer.name}, the singer, said {on}.", "{q.why}, and now there are consequences: {act.name}, from {act.city.name}, {q.news}."),
            then=(say("“{q.quote},” {act.singer.last} said."), say("{q.detail}")),
            loose=(say("{label}, the record company, [declined to comment|said it had “nothing but affection” for the band]."), say("{lawyer.name}, a lawyer for the band, put the sum in question at {sum}.", "At stake is {sum}, [give or take a tour|not counting the lawyers].", "The other side has asked for {sum}[, plus an apology|, in writing]."), say("{member.name}, who left the band {years} years ago, took another view. “{q.reply},” {member.he} said."), say("{fan.name}, who runs a fan page, [was shaken|was philosophical]. “[I have the tattoo, I can't take sides|They always made good records when they were angry],” {fan.he} said."), say("{act.name} have played together for {act.years} years; {song} is their best-known song.")),
            weight=0.35, covered=0.2,
        ),
        Stage(
            titles=("{settled}{act.name} and {label} settle their dispute", "Record company {label} answers {act.name}", "{act.singer.last} of {act.name}: “{q.quote}”"),
            abstracts=("{settled}Neither side would name the sum. Earlier, {sum} had been in question.", "{label} says it acted correctly. {q.detail}"),
            leads=("{settled}{act.name} and their record company, {label}, have settled, the two sides said {on}, after {act.singer.name} made public {t0:on} that the band {q.news}.", "The record company {label} spoke {on} for the first time about {act.name}, who {q.news}, as became known {t0:on}."),
            then=(say("“{q.reply},” said {member.name}, a former member."),),
            loose=(say("{q.why}."), say("{q.detail}"), say("{act.singer.name}, the singer, stood by every word. “{q.quote},” {act.singer.he} had said."), say("{lawyer.name}, a lawyer, called it “[a good day for people who read contracts|the end of the beginning]”."), say("A new album is [still planned|due in the spring].")),
            after=(2, 4), weight=0.25, chance=0.6,
        ),
    ),
    share=0.5,
    rhythm=OFFICE,
)  # fmt: skip

MUSIC = Desk("music", (ALBUM, SHOW, FESTIVAL, HALL, DISPUTE), share=0.9)

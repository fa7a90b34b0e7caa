# ruff: noqa: E501 (prose reads better unbroken)
"""How the film desk covers festivals, television, casting and documentaries."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.film_matters import (
    DOCUMENTARIES,
    FUSSES,
    PARTS,
    SERIES,
    Fuss,
    Inquiry,
    Part,
    Series,
)
from backend.news.sources.newsroom.desks.film_releases import films
from backend.news.sources.newsroom.desks.film_slate import STUDIOS, Film, played_by_a_woman
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City, Currency
from backend.news.sources.newsroom.schedule import EVENING, LEISURE, OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Festival:
    name: str
    city: City
    c: Country
    opener: Film
    one: Film
    two: Film
    winner: Film
    prize: str
    head: Person
    juror: Person
    critic: Person
    rebel: Person
    guest: Person
    actor: Film
    fuss: Fuss
    nth: int
    films: int
    lands: int
    days: int
    minutes: int
    purse: Money
    sold: Money
    buyer: str
    seats: int


_PRIZES = ("Golden Heron", "Silver Oar", "Crystal Anchor", "Golden Almond", "Bronze Lantern", "Glass Falcon", "Silver Thistle", "Golden Tram", "Blue Lion", "Copper Moon", "Amber Ship", "Golden Snail", "Silver Birch", "Iron Rose", "White Elephant", "Golden Key", "Paper Crane", "Green Ibex", "Silver Shutter", "Golden Bell", "Black Pearl", "Stone Owl", "Jade Fish", "Golden Spool")  # fmt: skip


def _festival(scene: Scene) -> Festival:
    c = scene.country("film festival")
    city = scene.pick(c.cities)
    prize = scene.fresh("festival prize", _PRIZES)
    opener, one, two, winner, actor = scene.sample(films(scene), 5)
    return Festival(
        f"{city.name} film festival", city, c, opener, one, two, winner, prize, scene.person(c, "the festival's director"), scene.person(None, "the president of the jury"), scene.person(None), scene.person(None), scene.person(c), actor,
        scene.fresh("festival fuss", FUSSES, uses=2), scene.between(7, 68), scene.between(90, 310), scene.between(28, 61), scene.between(8, 11), scene.between(3, 14), scene.money(2e4, 9e4, c.currency), scene.money(3e5, 3.8e6, c.currency), scene.pick(STUDIOS), scene.near(700, 2_400),
    )  # fmt: skip


FESTIVAL = Beat(
    "film festivals",
    _festival,
    (
        Stage(
            titles=("{name:cap} announces line-up with {one.name} and {two.name}", "{opener.director.last}'s {opener.name} to open {name}", "Film festival in {city.name} to open with {opener.name}", "{juror.last} to head jury at {name}", "Competition line-up for {name}: {two.name}, {one.name} and a {winner.script.kind}"),
            abstracts=("{opener.name} opens the {nth:ord} edition. {juror.name} presides over the jury that awards the {prize}.", "{one.name}, {two.name} and {winner.name} are among those competing for the {prize} in {city.name}.", "{head.name}, who runs it, promises {films} films in {days} days, “and not one that knows what it wants in the first minute”."),
            leads=("The {name} will open with {opener.name}, a {opener.script.kind} by {opener.director.name}, the organisers said {on}.", "In all, {films} films from {lands} countries will be shown at the {name}, whose director, {head.name}, presented the programme {on}.", "{juror.name} will preside over the jury of the {nth:ord} {name}. Among the films that {juror.he} will have to judge are {one.name} and {two.name}.", "New work by {one.director.name}, {two.director.name} and {winner.director.name} will compete at the {name}, according to the line-up published {on}."),
            then=(say("“[I watched nine hundred films and I still like films|A programme is an argument, and this one is about work|We have no theme; everybody else has one|There are four comedies, and that is a record],” said {head.last}.", "{head.last} [spoke of a strong year for {winner.script.kind:plural}|said the choice had been hard]. “[We quarrelled for a month, which is the only method|Half of these directors I had never heard of in January|If it made two of us leave the room and one of us stay, we took it],” {head.he} said."),),
            loose=(
                say("{one.name} is a {one.script.kind} in which {one.script.who} {one.script.plot}.", "Much is expected of {two.name}, in which {two.script.who} {two.script.plot}.", "In {winner.name}, by {winner.director.name}, {winner.script.who} {winner.script.plot}."),
                say("The main prize, the {prize}, comes with {purse}.", "The winner of the {prize} receives {purse}[, half of which goes to the distributor|]."), say("{juror.last} [has sat on juries before and once walked out of one|said {juror.he} would see every film twice]. “[I go to bed after the last film and not before|I promise to be unfair in public|A jury is nine people pretending to be one].”"),
                say("Tickets go on sale [tomorrow|at the weekend]; there are {seats} seats in the largest hall.", "The largest hall in {city.name} holds {seats}[, and is sold out as a rule|]."), say("The festival lasts {days} days and begins {t1:on}."), say("{guest.name}, who rents out rooms near the festival hall, is [booked up|changing the sheets]. “[Directors are tidy; critics are not|Last year I had a whole film crew in two rooms].”"),
            ),
            weight=0.3, covered=0.15, rhythm=OFFICE,
        ),
        Stage(
            titles=("{name:cap} opens with {minutes}-minute ovation for {opener.name}", "{opener.name} opens {name}: {opener.script.scene}", "Opening night at {name}: applause for {opener.lead.last}, shivers on the carpet", "{opener.director.last} opens {name} with a {opener.script.kind}"),
            abstracts=("{opener.director.name:s} {opener.script.kind} was applauded for {minutes} minutes in {city.name}. {head.name} has {days} days to go.", "A full house of {seats} saw {opener.name}, in which {opener.script.who} {opener.script.plot}.", "{opener.lead.name} was there; so was the weather. First impressions from {city.name}."),
            leads=("The {nth:ord} {name} began {on} with {opener.name}, which the audience of {seats} applauded for {minutes} minutes.", "{opener.script.who:cap} {opener.script.plot}: with this story, told by {opener.director.name} in {opener.name}, the {name} opened {on}.", "Not many festivals dare to open with a {opener.script.kind}. The one in {city.name} did so {on}, with {opener.name}, and was rewarded with {minutes} minutes of applause."),
            then=(say("“[I have been sick since lunch and now I'm hungry|I wanted it to be seen from the balcony, where I used to sit|My producer is crying, so either he liked it or he has seen the bill],” said {opener.director.last}.", "{opener.lead.name}, who {opener.part}, [waved from the stage|came on crutches|brought both parents]. “[I thought they were applauding so as not to have to go out into the cold|It's the first time I have seen it with people in it].”"),),
            loose=(
                say("The film has [its weaknesses|one flaw]: {opener.script.fault}. It also has {opener.script.scene}.", "Critics [were kinder than expected|disagreed on the stairs]. {critic.name}, a veteran of the front row, noted that {opener.script.praise}.", "{opener.script.praise:cap}, [was the view in the foyer|people said on the steps]; {opener.script.fault}, said others."),
                say("{head.last}, who opened the evening, [spoke for four minutes|thanked the cleaners first]. “[Cinemas are the last rooms in which nobody can skip|We shall be late with everything; please be patient],” {head.he} said."), say("Still to come are {one.name}, {two.name} and {winner.name}.", "Of the competition, {one.name} will be shown first."), say("Outside, [forty|sixty|two hundred] people [waited behind a rope for a glimpse of {opener.lead.name}|stood in the rain to see who was who]. {guest.name} had come [with a stepladder|by night bus]. “[I only like the arriving part|I got an autograph and I'm not sure whose].”"), say("The {prize} will be awarded {t4:on} by a jury under {juror.name}."),
            ),
            after=(1.5, 3), weight=0.35, covered=0.25, rhythm=EVENING,
        ),
        Stage(
            titles=("{winner.name} is the talk of {name}", "Festival diary, {city.name}: cheers for {winner.name}, boos for {one.name}", "{one.name} divides {name} as {winner.director.last}'s {winner.script.kind} delights it", "{winner.lead.last} the favourite in {city.name} after festival screening of {winner.name}"),
            abstracts=("A {winner.script.kind} by {winner.director.name} leads the critics' table in {city.name}; {one.name} was booed and defended.", "Half-time at the festival: {critic.name} and others have found a favourite for the {prize}.", "{winner.script.scene:cap}: one moment from {winner.name} is on everybody's lips."),
            leads=("There is a favourite for the {prize}: {winner.name}, a {winner.script.kind} by {winner.director.name} that was shown at the {name} {on}.", "Boos and bravos met {one.name}, by {one.director.name}, at the {name} {on}; a few hours later, there was nothing but applause for {winner.name}.", "At half-time of the {name}, the talk is of {winner.script.scene}. It belongs to {winner.name}, by {winner.director.name}."),
            then=(say("In the film, {winner.script.who} {winner.script.plot}. {winner.lead.name} {winner.part}.", "{winner.name} stars {winner.lead.name}. {winner.script.who:cap} {winner.script.plot}[; {winner.script.praise}|]."), say("Of {one.name}, detractors said that {one.script.fault}. Defenders said that {one.script.praise}.", "{one.director.name} took the boos for {one.name} [with a bow|in good part]. “[At least they were awake|I have been booed in larger halls],” {one.director.he} said.")),
            loose=(
                say("“[I forgot to take notes|I have two pages of notes and they all say yes|My neighbour gripped my arm and we had not been introduced],” said {critic.name}, who has covered the festival for [nineteen|eleven|thirty] years.", "{critic.name}, a critic, [saw it twice in a day|missed lunch for it]. “[It's not perfect, it's alive|I would give it the prize and go home].”"), say("{winner.director.last} [had driven to {city.name} with the only copy|looked as if {winner.director.he} had not slept]. “[We finished the sound on Sunday|I was told to wear something else and I own nothing else|Somebody stood up, and I thought he was leaving],” {winner.director.he} said."),
                say("{two.name}, by {two.director.name}, is to be shown [tomorrow|at the weekend].", "{two.lead.name} is expected in {city.name} for {two.name}."), say("The jury, under {juror.name}, [is keeping its counsel|was seen arguing in a pizzeria]."), say("It had opened {t1:on} with {opener.name}."),
            ),
            after=(1.2, 2.2), weight=0.28, covered=0.15, rhythm=LEISURE,
        ),
        Stage(
            titles=("{name:cap}: {fuss.head}", "Row at film festival in {city.name}: {fuss.head}", "{fuss.head:cap} at {name}", "Festival in {city.name} in turmoil: {fuss.head}"),
            abstracts=("{fuss.detail} Neither side is quite happy.", "“{fuss.against},” said {rebel.name}. “{fuss.answer},” said {head.name}.", "Instead of films, {city.name} is talking of a quarrel: {fuss.news}."),
            leads=("A row overshadowed the {name} {on} when {fuss.news}.", "The {name} has its scandal: {fuss.news}, it emerged {on}.", "Few people in {city.name} talked about films {on}, after {fuss.news}."),
            then=(say("“{fuss.against},” said {rebel.name}, [who is at the centre of it|speaking for those concerned|one of those affected].", "{rebel.name}, [for those affected|who spoke for the others], [made it short|did not mince words]. “{fuss.against},” {rebel.he} said."), say("“{fuss.answer},” said {head.last}.", "{head.last} [answered an hour later|came down to the foyer to reply]. “{fuss.answer},” {head.he} said."), say("{fuss.detail}")),
            loose=(say("{critic.name}, who writes for a film magazine, called it “[the best plot of the week|a storm, in a very good hall|the sort of thing that is funny in ten years]”."), say("{juror.name}, who heads the jury, [said it would change nothing in its verdict|declined to comment]."), say("Programme changes were [posted at the entrance|read out before each film]. {two.name}, by {two.director.name}, was shown [as planned|an hour late]."), say("{city.name} has seen worse: [in the festival's ninth year the screen was stolen|in one year half of the programme was stuck at customs|one opening film was shown upside down].", "The festival, now in its {nth:ord} year, ends {t4:on} with the award of the {prize}."), say("{guest.name}, a visitor, [took it calmly|shrugged]. “[I paid for drama|It gave me time to eat|I've seen three films about quarrels today and this one's shorter].”")),
            after=(1, 2), weight=0.3, covered=0.2, rhythm=LEISURE,
        ),
        Stage(
            titles=("{winner.name} wins {prize} at {name}", "{name:cap}: {prize} goes to {winner.director.last}'s {winner.script.kind}", "{winner.director.last} takes top prize at {name} with {winner.name}", "{two.lead.last} best actor, {winner.name} best film at {name}"),
            abstracts=("The jury under {juror.name} chose a {winner.script.kind} in which {winner.script.who} {winner.script.plot}.", "{winner.director.name} receives {purse}. {two.lead.name} is honoured for {two.name}.", "After {days} days in {city.name}, the favourite won. {one.name} went home without a prize."),
            leads=("{winner.director.name} won the {prize}, the main prize of the {name}, {on} for {winner.name}, a {winner.script.kind}.", "The {prize} of the {name} goes to {winner.name}. The jury made its choice known {on}, [after an hour of debate|unanimously, it is said|after a night of debate].", "The favourite has won: {winner.name}, by {winner.director.name}, received the {prize} of the {name} {on}."),
            then=(say("“[I had prepared a speech for losing, and it was better|This belongs to the people who carried the lamps|I should like to thank the rain],” said {winner.director.last}, who receives {purse}.", "{winner.director.last}, [pale|in a borrowed jacket], [needed a moment|kept it short]. “[I rang my mother, and she was watching something else|Thank you, and please turn the lights down again],” {winner.director.he} said. The prize is worth {purse}."), say("{juror.last} said the film had won because {winner.script.praise}.", "“[We looked for faults and found that we didn't care|Nine people cried at nine different moments|It was the only film about which nobody changed the subject],” said {juror.last}.")),
            loose=(say("In the film, {winner.script.who} {winner.script.plot}.", "{winner.lead.name} {winner.part} in it; what stays in the mind is {winner.script.scene}."), say("The prize for acting went to {two.lead.name}, for {two.name}.", "{two.lead.name} was named best actor for {two.name}, by {two.director.name}."), say("{one.name} went away [without a prize|with a mention]. “[I'll take the boos home, they were sincere|There's always next year, and I don't mean for me],” said {one.director.name}."), say("{fuss.head:cap} had been the talk of the festival {t3:on}. {head.last} [did not mention it|made a joke of it] at the ceremony.", "{head.last} spoke of [a good year|the best-attended edition so far]. “[Nobody was hurt and everybody was late|We sold out of everything except umbrellas],” {head.he} said."), say("The audience award [was won by|went to] {actor.name}, a {actor.script.kind} from {actor.country.name}.")),
            after=(2, 3), weight=0.6, covered=0.45, rhythm=EVENING,
        ),
        Stage(
            titles=("{buyer} buys {prize} winner {winner.name} for {sold}", "Festival winner {winner.name} sold to {lands} countries", "{sold} deal for {winner.name} after win at {name}"),
            abstracts=("A bidding contest followed the prize in {city.name}. {winner.director.name:s} {winner.script.kind} will now be seen widely.", "{buyer} paid {sold} for a film that was made in {winner.country.name} for less."),
            leads=("{buyer} has bought {winner.name}, winner of the {prize} at the {name}, for {sold}, the company said {on}.", "The film that won the {prize} in {city.name} {t4:on}, {winner.name}, will reach cinemas in {lands} countries after a deal worth {sold}."),
            then=(say("“[Three of us were bidding in the same stairwell|We'd have paid more, don't tell them|It's a {winner.script.kind} and it'll be a hard sell, that's what we are for],” a buyer for {buyer} said."),),
            loose=(say("{winner.director.last} [was in bed with a cold when the call came|said the money would pay off a kitchen]. “[My landlord has seen every film about rent; mine is the first he liked|I asked for one thing: no new title].”"), say("The film, in which {winner.script.who} {winner.script.plot}, runs for {winner.minutes} minutes."), say("{two.name}, shown at the same festival, [is still for sale|went for a smaller sum]."), say("{head.name}, who directs the festival, [was pleased|spoke of a record for {city.name}]. “[We don't have a market, we have a bar, and it works|A prize is nice, a cinema is better].”"), say("{critic.name}, a critic who was there, expects [“queues and quarrels”|“a quiet start and a long life”].")),
            after=(1, 2.5), weight=0.2, chance=0.7, rhythm=OFFICE,
        ),
    ),
    share=1.0,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Season:
    s: Series
    c: Country
    city: City
    net: str
    maker: Person
    star: Person
    other: Person
    critic: Person
    boss: Person
    fan: Person
    season: int
    episodes: int
    more: int
    stars: int
    viewers: Money
    sign: Money
    share: int
    renewed: bool
    where: str


_NETS = ("Skylark", "Vantage", "Canal Verde", "Public One", "Northlight", "Marquee", "Orchid TV", "Channel Eleven", "Parlour", "Tidal", "First Programme", "Lumen")  # fmt: skip


def _season(scene: Scene) -> Season:
    c = scene.country()
    viewers = scene.near(420_000, 6_200_000)
    return Season(
        scene.fresh("television", SERIES), c, scene.pick(c.cities), scene.pick(_NETS), scene.person(c, "the creator"), scene.person(c, "who plays the lead"), scene.person(c), scene.person(None), scene.person(c, "the head of drama"), scene.person(c), scene.between(1, 4), scene.between(6, 10), scene.between(6, 10),
        scene.between(3, 5), Money(float(viewers), Currency()), Money(float(scene.near(11_000, 94_000)), Currency()), scene.between(14, 39), scene.chance(0.5), scene.pick(("a former barracks", "an empty hospital", "two streets and a car park", "a warehouse by the docks", "a village that agreed to keep its lights off", "a disused airport terminal")),
    )  # fmt: skip


TELEVISION = Beat(
    "television",
    _season,
    (
        Stage(
            titles=("{s.title} review – {s.kind} that is {s.verdict}", "TV review: {s.title}, a {s.kind} about {s.pitch}", "{s.title} on {net}: {s.verdict}", "Television: {star.last} leads {s.kind} {s.title}", "What to watch: {s.title}, series {season}, on {net}"),
            abstracts=("A {s.kind} about {s.pitch}. {stars} stars out of five.", "{maker.name} has written {episodes} episodes about {s.pitch}. They are {s.verdict}.", "{star.name} and {other.name} star in {net}'s {s.kind}. One small complaint: {s.gripe}."),
            leads=("It begins with {s.moment}. {s.title}, on {net}, is a {s.kind} about {s.pitch}, and it is {s.verdict}.", "{s.title} is about {s.pitch}. {net} has given it {episodes} episodes, [and it needs every one|two more than it strictly needs].", "What can one still do with a {s.kind}? {s.title}, whose {season:ord} season started on {net} {on}, has an answer: {s.pitch}.", "“{s.maker},” says {maker.name}, who created {s.title}. The result, on {net}, is {s.verdict}."),
            then=(say("{star.name} plays the lead [as if nobody were filming|with great economy|like somebody who has not slept since the first episode]; {other.name} [gets the laughs|is the one to fear|does a lot with a coat].", "The cast is [first-rate|a pleasure], {star.name} at its head[, with {other.name} close behind|]. Watch them in {s.moment}.", "{other.name} has the smaller part and the bigger scenes; {star.name}, in the lead, [lets {other.him}|makes room]."), say("Complaints? {s.gripe:cap}. [That's all|It hardly matters|Otherwise none].", "Admittedly, {s.gripe}. But then comes {s.moment}, and one forgives a great deal.", "One quibble: {s.gripe}.")),
            loose=(say("“{s.maker},” said {maker.last}.", "{maker.last}, who [used to write for radio|once worked in insurance|began on a soap opera], [shrugs off praise|is pleased and suspicious]. “{s.maker},” {maker.he} said."), say("It was filmed in {where} in {city.name}.", "The {episodes} episodes were shot in {where} outside {city.name}[, in ninety days|]."), say("{net} shows [two episodes a week|all {episodes} episodes at once|one episode every Sunday].", "All {episodes} episodes can be seen on {net}."), say("{critic.name}, who teaches screenwriting, uses it in class. “[The first ten minutes tell you everything except what you want to know|There isn't a line you could sell separately].”", "It is [the third|the second|the fourth] {s.kind} that {net} has started this year[, and the only one with a pulse|]."), say("{boss.name} of {net} said the {season:ord} season had cost [less than people think|about as much as the one before]. “[We bought time, which is the expensive thing|Nobody here asked for more explosions],” {boss.he} said.")),
            weight=0.25, covered=0.12,
        ),
        Stage(
            titles=("{s.title} draws {viewers} viewers on {net}", "{viewers} watch {s.kind} {s.title}, a television record for {net}", "{net} hit {s.title} wins {share}% of television audience", "Ratings: {s.title} starts its season with {viewers}"),
            abstracts=("The {s.kind} about {s.pitch} had a {share}% share of the {c.demonym} audience.", "{boss.name} of {net} calls the figures “indecent”. {star.name} heard of them in a lift.", "Nearly {share} in every hundred sets were tuned to {s.title}, according to {net}."),
            leads=("{s.title} was watched by {viewers} people in {c.name}, {net} said {on}, a share of {share}%.", "{net} has a hit. Its {s.kind} {s.title} drew {viewers} viewers, figures published {on} show.", "A series about {s.pitch} has become the most-watched programme of the week in {c.name}: {s.title} was seen by {viewers}."),
            then=(say("“[I checked the figure twice and then I rang my mother|We had hoped for half and budgeted for a third|It's indecent, and I'm very happy],” said {boss.last}.", "{boss.last} [spoke of a “pleasant shock”|had cake brought to the office]. “[You can't plan it, or we'd do it every week|We thought it was too odd for Sundays],” {boss.he} said."),),
            loose=(say("{star.name}, who plays the lead, [was recognised at a petrol station|has had to change bakers]. “[A woman told me the ending, and it was better than ours|They call me by the wrong name, and I've begun to answer to it],” {star.he} said."), say("“{s.maker},” {maker.name}, the creator, said [when asked for the recipe|at a reading in {city.name}]."), say("The season, the {season:ord}, has {episodes} episodes.", "It is the {season:ord} season; {episodes} episodes were made, in {where}."), say("Not everybody is won over. {critic.name}, who reviews for a weekly, finds that {s.gripe}.", "{critic.name}, a critic, was less sure. “[{s.gripe:cap}|I prefer my evenings with less plot],” {critic.he} said."), say("{fan.name}, from {city.name}, watches [with eleven friends and a pot of soup|on the bus, without sound]. “[We stop after every scene and quarrel|I've told my boss I'm at the dentist].”"), say("What people talk about is {s.moment}.")),
            after=(1, 2.5), weight=0.2, covered=0.06, chance=0.75, rhythm=OFFICE,
        ),
        Stage(
            titles=("{s.title} finale explained: what happened on {net}", "{s.title} ends season with a twist, and {maker.last} defends it", "Television finale: {s.title} leaves viewers [stunned|divided|arguing]", "How {s.title} ended, by its creator {maker.last}"),
            abstracts=("Look away now: {s.ending}. {maker.name} explains why.", "The last of {episodes} episodes has been shown, and {c.demonym} viewers are not of one mind. Spoilers follow."),
            leads=("[Those who have not seen it should stop here|This article gives away the ending]: in the last episode of {s.title}, shown {on}, {s.ending}.", "So {s.ending}. With that, the {season:ord} season of {s.title} came to an end on {net} {on}, and the quarrel began."),
            then=(say("“[We had three endings and chose the one that frightened us|I knew it when I wrote the first scene and told nobody, including the cast|If half of them are angry, half of them were listening],” said {maker.last}.",),),
            loose=(say("{star.name}, who plays the lead, [learned of it on the day|had been sworn to silence]. “[I read the page, I read it again, I went for a walk|I told my wife a different ending, just in case],” {star.he} said."), say("“[I threw a cushion|I knew it from episode two, ask my sister|It's the only thing it could be, and I hate it],” said {fan.name}, who watched in a bar in {city.name}.", "{fan.name}, a viewer in {city.name}, has [watched it again for clues|started a petition for another ending]. “[It's all there in {s.moment}|They owe me a Sunday].”"), say("{critic.name}, a critic, called it “[earned|bold, and a bit of a cheat|the best last minute of the year]”, though {s.gripe}."), say("The first episode had shown {s.moment}."), say("Whether there will be more, {net} [would not say|has yet to decide].")),
            after=(1.5, 4), weight=0.25, covered=0.12, rhythm=LEISURE, chance=0.85,
        ),
        Stage(
            titles=("{net} renews {s.title} for another season", "{s.title} to return for {more} more episodes", "{s.kind:cap} {s.title} renewed by {net}", "More television from {maker.last}: {s.title} renewed"),
            abstracts=("{maker.name} will write {more} more episodes of the {s.kind}.", "{net} has seen enough: {s.title} goes on. {star.name} returns."),
            leads=("{net} has ordered {more} more episodes of {s.title}, its {s.kind} about {s.pitch}, it said {on}.", "{s.title} will go on. {net} renewed the {s.kind} {on}, and {star.name} [will return|has signed]."),
            then=(say("“[I had buried half of them, so I must dig|We left one door open, by mistake|I asked for a year and got nine months],” said {maker.last}."),),
            loose=(say("Filming is to begin in {city.name} [in the autumn|within months], again in {where}."), say("The season that has just ended had {episodes} episodes. In its finale, {s.ending}."), say("{star.name} said {star.he} had [found out from a taxi driver|agreed before reading a page]. “[I still have the shoes|I'm told that I survive].”", "{other.name}'s part is to be [bigger|written out, then back in]."), say("“[It's cheaper than inventing something|We listen to viewers, and there were {viewers} of them],” said {boss.last}."), say("{fan.name}, who keeps a fan page, [had already ordered the cake|is relieved]. “[I've lived with that ending for days|Now don't ruin it].”")),
            after=(1, 3), weight=0.25, covered=0.1, when=lambda f: f.renewed, rhythm=OFFICE,
        ),
        Stage(
            titles=("{net} cancels {s.title} after {season:count season}", "{s.title} axed by {net}: no more {s.kind}", "End of the line for television series {s.title}", "{sign} sign petition to save {s.title} after {net} drops series"),
            abstracts=("The {s.kind} about {s.pitch} will not return. A petition to save it has {sign} names.", "{maker.name} learned of it from a colleague. {net} speaks of costs."),
            leads=("{net} will make no more of {s.title}, it said {on}, [citing costs|without giving reasons]. Within hours {sign} people had signed a petition.", "{s.title}, the {s.kind} about {s.pitch}, has been cancelled after {season:count season}, {net} said {on}."),
            then=(say("“[I heard it from the caterer|They sent flowers, and the flowers were late|We told the story, they can't un-broadcast it],” said {maker.last}."),),
            loose=(say("{boss.last} said it had been “[the hardest call of the year|loved by those who watched it]”. Figures had fallen by {share}% [since the start|over the season]."), say("{star.name}, the lead, [thanked the crew|posted a picture of an empty chair]. “[I'd have done ten more for the sandwiches|I kept the coat].”"), say("{fan.name}, who started the petition in {city.name}, is [not giving up|drafting a letter]. “[They cancelled it between two cliff edges|I can count, and {sign} is a lot].”"), say("In its last episode, {s.ending}."), say("The set, in {where}, is to be [pulled down|sold].", "{critic.name}, a critic, was sorry. “[It was {s.verdict}|A series should be allowed to end on its own legs].”")),
            after=(0, 0), weight=0.3, covered=0.15, when=lambda f: not f.renewed, rhythm=OFFICE,
        ),
    ),
    share=1.0,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Casting:
    p: Part
    c: Country
    place: City
    studio: str
    director: Person
    star: Person
    heir: Person
    producer: Person
    agent: Person
    known: Film
    leaves: bool
    age: int
    heir_age: int
    read: int
    weeks: int
    fee: Money


def _casting(scene: Scene) -> Casting:
    p = scene.fresh("casting", PARTS)
    c = scene.country()
    she = played_by_a_woman(
        p.part,
        p.boast.split(",")[0] if p.boast.startswith(("He", "She")) else "",
        p.doubt if "mother" in p.doubt else "",
        "she" if p.hitch == "pregnancy" else "",
    )
    she = scene.chance(0.5) if she is None else she
    return Casting(
        p, c, scene.pick(scene.country().cities), scene.pick(STUDIOS), scene.person(c, "the director"), scene.person(c, she=she), scene.person(c, she=she), scene.person(c, "the producer"), scene.person(None), scene.pick(films(scene)), scene.chance(0.75), scene.between(31, 46), scene.between(24, 40),
        scene.between(40, 310), scene.between(7, 16), scene.money(3e5, 4e6, c.currency),
    )  # fmt: skip


CASTING = Beat(
    "casting",
    _casting,
    (
        Stage(
            titles=("{star.last} cast as {p.part}", "{star.last} to star in {director.last}'s {p.kind} {p.project}", "Casting: {star.last} lands lead role in {p.project}", "{director.last} casts {star.last} in {p.kind} for {studio}"),
            abstracts=("{star.name} will play {p.part} in a {p.kind} by {director.name}.", "“{p.boast},” says {star.name} of the role.", "{director.name} read {read} actors for {p.project} before choosing {star.name}."),
            leads=("{star.name} will play {p.part} in {p.project}, a {p.kind} to be directed by {director.name}, {studio} said {on}.", "After months of rumour the lead in {p.project} has been cast: {star.name}, {age}, is to play {p.part}.", "{director.name} has found {director.his} lead. In the {p.kind} {p.project}, {star.name} will be {p.part}, {studio} said {on}."),
            then=(say("“{p.boast},” {star.last} said.", "{star.last}, {age}, [did not hesitate|said yes in a car park]. “{p.boast},” {star.he} said."), say("To prepare, {star.last} is [said to be|already] {p.needs}.", "The part will mean {p.needs}[, for which the contract sets aside {weeks} weeks|].")),
            loose=(say("{director.last} had heard {read} actors. “[The others acted; this one sat down|I knew by the way {star.he} held the cup|I had written it for somebody dead],” {director.he} said."), say("{star.last} [came to notice on stage in {c.capital}|was last seen in a small part in {known.name}]."), say("Shooting lasts {weeks} weeks and begins in {place.name} [in the spring|next month|as soon as the weather allows]."), say("{producer.last} put the fee at “[less than you think|a sum that I signed with my eyes shut]”. People in the business speak of {fee}."), say("{agent.name}, who casts films in {c.name}, [was surprised|would have chosen otherwise]. “[It's against type, if there is a type|Brave, or they ran out of time],” {agent.he} said.")),
            weight=0.28, covered=0.15,
        ),
        Stage(
            titles=("{star.last} leaves {p.project} over {p.hitch}", "{p.project} loses its lead as {star.last} drops out", "Recasting: {studio} looks for new lead after {star.last} quits {p.kind}", "{star.last} withdraws from {director.last}'s {p.project}"),
            abstracts=("“{p.doubt},” says {star.name}. {director.name} must find another lead.", "{p.hitch:cap} has cost the {p.kind} by {director.name} its lead actor."),
            leads=("{star.name} will not play {p.part} after all. {studio} and the actor parted {on}; the reason given was {p.hitch}.", "{p.project}, the {p.kind} by {director.name}, has lost its lead: {star.name} withdrew {on} because of {p.hitch}."),
            then=(say("“{p.doubt},” {star.last} said.",), say("{director.last} [wished {star.him} well|took the news in a studio in {place.name}]. “[I had built the whole film round one face|We have a set, a crew and a hole in the middle|These things happen, and never at a good time],” {director.he} said.")),
            loose=(say("The casting had been announced {t0:on}.", "As late as {t0:since}, {star.last} had said: “{p.boast}.”"), say("{producer.last} said shooting, planned for {weeks} weeks, would [start later|not be put off]."), say("{agent.name}, who casts films, sees [no great harm|a pattern]. “[Half the famous parts were played by the second choice|Directors fall in love, actors have calendars],” {agent.he} said."), say("Of the {read} actors who had been heard, [three|two] are being [asked again|called back], according to people in the production."), say("Lawyers are discussing {fee}.", "Whether any of the fee, said to be {fee}, has been paid is [not known|for lawyers to say].")),
            after=(2, 5), weight=0.3, covered=0.15, when=lambda f: f.leaves,
        ),
        Stage(
            titles=("{heir.last} replaces {star.last} in {p.project}", "Unknown {heir.last} takes over lead role in {p.project}", "{director.last} recasts {p.kind} with {heir.last}", "{heir.last}, {heir_age}, cast in {p.project} after {star.last} exit"),
            abstracts=("{heir.name} steps into the part that {star.name} gave up.", "{director.name} has chosen an actor who {p.heir}."),
            leads=("{heir.name}, {heir_age}, takes over from {star.name} in {p.project}, {studio} said {on}.", "The search took less than a week: {heir.name} is to play {p.part} in {director.name:s} {p.project}, after {star.name} left."),
            then=(say("{heir.last}, {heir_age}, {p.heir}. “[I was asked on Monday and I've stopped eating|I know I am the second choice; I've seen the first, and I'd have chosen {star.him} too|My flatmate thinks that I'm joking],” {heir.he} said."),),
            loose=(say("{director.last} spoke of [luck|a discovery]. “[I had the wrong picture in my head|After two lines I put the script away],” {director.he} said."), say("{star.last} had withdrawn {t1:on} because of {p.hitch}. {star.he:cap} sent [a telegram|the annotated script]."), say("The role still demands {p.needs}. There are {weeks} weeks of shooting."), say("{producer.last} would say nothing about money[, except that there was less of it|]."), say("Work begins in {place.name} [on the first of the month|as planned].")),
            after=(1.5, 4), weight=0.25, covered=0.1, when=lambda f: f.leaves,
        ),
        Stage(
            titles=("Filming starts on {p.project} in {place.name}", "First look at {star.last} in {p.kind} {p.project}", "Cameras roll in {place.name} for {director.last}'s {p.project}"),
            abstracts=("{star.name} was seen in costume as {p.part}.", "{place.name} will be a film set for {weeks} weeks."),
            leads=("Filming of {p.project} began in {place.name} {on}, with {star.name} as {p.part}.", "{place.name} has visitors: {director.name} started work on {p.project}, a {p.kind}, {on}."),
            then=(say("“[The first day is for finding the toilets|We shot one scene and it rained on cue|I said action, and a dog walked in; the dog stays],” said {director.last}."),),
            loose=(say("{star.last} has spent the past weeks {p.needs}. “{p.boast},” {star.he} had said {t0:on}."), say("For {weeks} weeks, two streets will be closed. Shopkeepers are [paid|promised “something”]."), say("{producer.last} [guarded the catering tent|counted umbrellas]. “[Every hour costs as much as a car|So far we are nine minutes behind],” {producer.he} said."), say("{agent.name}, from casting, found [sixty|two hundred] extras in the town. “[Beards were scarce|Everybody wanted to be a corpse].”"), say("{studio} plans a release [next year|in the autumn].")),
            after=(0, 0), weight=0.2, when=lambda f: not f.leaves,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Documentary:
    d: Inquiry
    c: Country
    city: City
    net: str
    maker: Person
    witness: Person
    speaker: Person
    editor: Person
    viewer: Person
    lawyer: Person
    hours: int
    minutes: int
    years: int
    seen: Money
    pages: int


def _documentary(scene: Scene) -> Documentary:
    c = scene.country()
    return Documentary(
        scene.fresh("documentary", DOCUMENTARIES), c, scene.fresh("documentary city", c.cities), scene.pick(_NETS), scene.person(c, "who made the film"), scene.person(c), scene.person(c), scene.person(c), scene.person(c), scene.person(c),
        scene.between(140, 900), scene.between(71, 118), scene.between(2, 7), Money(float(scene.near(240_000, 2_900_000)), Currency()), scene.near(300, 4_800),
    )  # fmt: skip


DOCUMENTARY = Beat(
    "documentaries",
    _documentary,
    (
        Stage(
            titles=("Documentary {d.title} looks at {d.subject}", "{d.title}: {c.demonym} documentary finds that {d.finds}", "Documentary review: {d.title}, {maker.last}'s film on {d.subject}", "{maker.last} documentary on {d.subject} has premiere in {city.name}"),
            abstracts=("{maker.name:s} film claims that {d.finds}. {d.target:cap} denies wrongdoing.", "A {minutes}-minute documentary about {d.subject}, {d.craft}.", "{maker.name} spent {years} years on {d.subject}. The film is {d.craft}."),
            leads=("A documentary shown in {city.name} {on} claims that {d.finds}. {d.title}, by {maker.name}, is about {d.subject}.", "{maker.name} spent {years} years and {hours} hours of film on {d.subject}. The outcome, {d.title}, had its premiere in {city.name} {on}.", "{d.title} is a documentary about {d.subject}. It is {d.craft}, and it says that {d.finds}."),
            then=(say("Its chief witness is {witness.name}, {d.witness}. “{d.said},” {witness.he} says in the film.", "“{d.said},” says {witness.name}, {d.witness}, in the [strongest|quietest] scene of the film."), say("{d.target:cap} rejected the claim. “{d.reply},” said its spokes{speaker.man}, {speaker.name}.", "{speaker.name}, for {d.target}, [had seen the film|declined to come]. “{d.reply},” {speaker.he} said.")),
            loose=(say("“[I started with a love of the place and ended with a filing cabinet|I rang {pages} numbers, and nine people rang back|I had the title before I had the story],” {maker.last} said after the screening.", "{maker.last} [read {pages} pages of files|had to learn to read balance sheets] for it. “[Paper doesn't cry, so you must find who typed it|It was dull until page {pages}],” {maker.he} said."), say("The film lasts {minutes} minutes; {editor.name} cut it from {hours} hours.", "{editor.name}, the editor, had {hours} hours to choose from. “[I cut my favourite scene twice|We left the silences in],” {editor.he} said."), say("{net} will broadcast it {t1:on}."), say("{viewer.name}, in the audience, [had brought a notebook|works in the trade]. “[I knew some of it and none of the worst|Somebody will ring somebody tonight].”"), say("There were [questions for an hour|long queues for the second screening] in {city.name}.")),
            weight=0.28, covered=0.1,
        ),
        Stage(
            titles=("{seen} see documentary {d.title} as {d.target} hits back", "After documentary on {d.subject}, {d.target} {d.deed}", "Documentary {d.title} stirs {c.name}: {d.target} {d.deed}", "{net} stands by {maker.last}'s documentary {d.title}"),
            abstracts=("{d.target:cap} {d.deed} after the film was seen by {seen} people.", "“{d.reply},” it says. {maker.name} stands by every minute."),
            leads=("{d.target:cap} {d.deed} {on}, days after a documentary claimed that {d.finds}.", "The documentary {d.title}, seen by {seen} people on {net}, has had a first effect: {d.target} {d.deed}.", "{net} said {on} that {seen} people had watched {d.title}, a documentary about {d.subject}. {d.target:cap} {d.deed}."),
            then=(say("“{d.reply},” said {speaker.name}, who speaks for it.", "{speaker.name}, the spokes{speaker.man}, repeated what {speaker.he} had said before. “{d.reply}.”"), say("“[Every sentence has two sources and a piece of paper|They've had our questions for four months|I'm sorry only about what we left out],” said {maker.last}.")),
            loose=(say("The film was first shown {t0:on} in {city.name}. In it, {witness.name}, {d.witness}, says: “{d.said}.”"), say("{witness.name}, {d.witness}, has had [forty|two hundred|more than ninety] letters. “[One was nasty, and it had no stamp|People I don't know have brought me cake],” {witness.he} said."), say("{lawyer.name}, [a lawyer who read the script before it was shown|the producers' lawyer|who checked each name for the broadcaster], [sees no danger|sleeps well]. “[I took out one adjective|I was paid by the page and it is short|True, dull and documented, as I like it],” {lawyer.he} said."), say("{editor.name}, who edited the film, [spoke of “a strange week”|has put another {minutes} minutes of material aside]."), say("{viewer.name}, who saw the premiere, wants [names|an apology]. “[Somebody signed those papers|You can't put it back in the drawer].”")),
            after=(2, 3.5), weight=0.3, covered=0.15,
        ),
        Stage(
            titles=("Documentary {d.title} has consequences: {d.result}", "{d.result:cap} after documentary on {d.subject}", "{maker.last}'s documentary prompts action in {c.name}"),
            abstracts=("Following {d.title}, {d.result}.", "{witness.name} is “glad and tired”. The film on {d.subject} has done its work."),
            leads=("A documentary has moved the authorities in {c.name}: {d.result}, it was announced {on}.", "After the film {d.title}, which claimed that {d.finds}, {d.result}."),
            then=(say("“[Glad and tired|I'd have preferred it eleven years ago|Now they are asking the questions I was told not to ask],” said {witness.name}, {d.witness}.",),),
            loose=(say("{maker.last} [was editing when {maker.he} heard|heard of it on the radio]. “[A film can't do it, people can, if they're cross enough|I will believe it when I see the second page],” {maker.he} said."), say("{d.target:cap} promised to cooperate. “{d.reply},” it had said before."), say("By now {seen} people have seen the film, according to {net}."), say("{lawyer.name}, a lawyer for those concerned, expects [months of work|a first report before the summer]."), say("{net} is repeating it [at the weekend|next week], and {city.name} has [asked for a second screening|named no date for a debate]."), say("It was {t1:on} that {d.target} {d.deed}.")),
            after=(2, 5), weight=0.38, covered=0.2, chance=0.75,
        ),
    ),
    share=0.8,
    rhythm=LEISURE,
)  # fmt: skip

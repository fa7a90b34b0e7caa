# ruff: noqa: E501 (prose reads better unbroken)
"""How the cycling desk reports races: stage races, one-day races and the track."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.cycling_riders import Rider, Team, climbs, teams
from backend.news.sources.newsroom.grammar import number
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import EVENING, LEISURE, Rhythm, moment_on
from backend.news.sources.newsroom.world import Country, Money

_FINISH = Rhythm((0,) * 14 + (2, 8, 10, 7, 4, 2, 1, 1, 0, 0), (0,) * 14 + (2, 8, 10, 7, 4, 2, 1, 1, 0, 0))


def peloton(scene: Scene, women: bool | None = None) -> list[Team]:
    every = scene.world.kept("cycling teams", lambda: teams(scene.world))
    return [team for team in every if women is None or team.women is women]


def gap(seconds: int) -> str:
    """'one second', '34 seconds', 'two minutes 5 seconds'."""
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{number(rest)} second{'' if rest == 1 else 's'}"
    start = f"{number(minutes)} minute{'' if minutes == 1 else 's'}"
    return f"{start} {rest} second{'' if rest == 1 else 's'}" if rest else start


@dataclass(frozen=True)
class Tour:
    name: str
    c: Country
    women: str | None
    days: int
    depart: str
    finish: str
    towns: tuple[str, ...]
    sprint_town: str
    clock_town: str
    sprint_day: int
    climb_day: int
    clock_day: int
    climb: str
    sprinter: Rider
    beaten: Rider
    first: Rider
    other: Rider
    third: Rider
    youth: Rider
    escapee: Rider
    last_man: Rider
    first_team: Team
    other_team: Team
    director: Person
    fan: Person
    mountain_gap: str
    after_clock: str
    lost: str
    third_gap: str
    winner: Rider
    loser: Rider
    winner_team: Team
    turned: str | None
    kept: str | None
    km: int
    clock_km: int
    gradient: float
    ramp: int
    caught: int
    speed: int
    nth: int
    weather: str
    jersey: str
    times: tuple[datetime, ...]


_WEATHER = ("crosswinds", "rain from start to finish", "heat that softened the tar", "hail on the descent", "fog on the tops", "a dry north wind", "sleet above the tree line", "dust and sunshine", "a wet, cold morning", "the first warm day of the year")  # fmt: skip


def _tour(scene: Scene) -> Tour:
    c = scene.country("stage race")
    region = scene.pick(c.land.regions)
    women = scene.chance(0.5)
    one, two, three, four, five, six, seven = scene.sample(peloton(scene, women), 7)
    depart, finish, sprint_town, clock_town = (city.name for city in scene.sample(c.cities, 4))
    sprint_day, climb_day = scene.between(1, 2), scene.between(3, 4)
    days = climb_day + scene.between(2, 3)
    start = scene.start
    ahead, turned = scene.between(6, 58), scene.chance(0.5)
    won_back = ahead + scene.between(1, 31) if turned else scene.between(2, ahead - 1)
    left = abs(ahead - won_back)
    winner, loser = (two, one) if turned else (one, two)
    last = max(days, climb_day + 2)
    return Tour(
        scene.pick((f"Tour of {region}", f"{region.removeprefix('the ')} Stage Race", f"{c.demonym} Week", f"Ring of {region}")), c, "" if women else None, last, depart, finish, (depart, finish), sprint_town, clock_town, sprint_day, climb_day, climb_day + 1, scene.pick(climbs(c)),
        three.sprinter, four.sprinter, one.climber, two.climber, five.climber, six.young, six.helper, seven.sprinter, one, two, scene.person(c, "the race director"), scene.person(c), gap(ahead), gap(left), gap(won_back), gap(left + scene.between(9, 75)), winner.climber, loser.climber, winner, "" if turned else None, None if turned else "",
        scene.between(121, 158) if women else scene.between(158, 214), scene.between(14, 34), scene.tenth(6.2, 9.4), scene.between(11, 17), scene.between(1, 9), scene.between(58, 71), scene.between(6, 74), scene.pick(_WEATHER), scene.pick(("yellow", "blue", "red", "green", "white", "orange")),
        tuple(moment_on(start + timedelta(days=day), _FINISH if day else LEISURE, scene.rng) for day in (0, sprint_day, climb_day, climb_day + 1, last)),
    )  # fmt: skip


STAGE_RACE = Beat(
    "stage races",
    _tour,
    (
        Stage(
            titles=("{name} preview: {first.last} and {other.last} favourites for {days}-stage race", "{name} to be decided on {climb}, says {first.last}", "{first_team.name} bring {first.last} to {name}", "{name}: the stages, the climbs and the riders to watch", "{other.last} targets overall win at {name}"),
            abstracts=("The race goes from {depart} to {finish} in {days} stages. {climb:cap} comes on day {climb_day:fig}.", "{first.name} of {first.team} is the favourite, with {other.name} of {other.team} close behind.", "A sprint or two, one big climb and {clock_km} kilometres against the clock await the peloton."),
            leads=("The {nth:ord} {name} sets off from {depart} with {first.name} of {first.team} as the favourite and {other.name} of {other.team} as the rider most likely to spoil it.", "{climb:cap}, {gradient}% on average and {ramp}% at its worst, will decide the {name}, if the riders who gathered in {depart} {on} are to be believed.", "One summit finish, {clock_km} kilometres against the clock and {days} stages in all: the {name}, which ends in {finish}, has something for everybody."),
            then=(say("“[I have been up it twice, once on a bike|My legs say yes and my head says wait and see|I'd rather be the hare than be asked about the hare],” said {first.last}.", "{first.last} [reconnoitred the climb last month|arrived late from a training camp]. “[There is one place to attack and everyone knows where it is|It comes down to eleven minutes, and I've trained for twelve],” {first.he} said."),),
            loose=(say("{other.last} is the better time triallist of the two, {first.last} the better climber.", "“[If I'm within half a minute before the time trial, I'll sleep well|People say I can't descend; I can, I don't enjoy it],” said {other.last}."), say("{director.last} [promised narrow roads|has taken out one descent for safety's sake]. “[We don't draw the hills, we find them|The road is there and they will make the race],” {director.he} said."), say("For the sprinters, {sprinter.name} ({sprinter.team}) and {beaten.name} ({beaten.team}), there is a chance on day {sprint_day:fig}.", "{sprinter.name} of {sprinter.team} is the quickest of the sprinters."), say("The longest stage measures {km} kilometres.", "On paper, {km} kilometres on day {sprint_day:fig} are the longest of the {days} stages."), say("{first_team.boss.name}, the manager of {first_team.name}, expects “[a race of patience|nerves, wind and one bad corner]”."), say("The leader will wear a {jersey} jersey.", "Last year the {jersey} jersey changed shoulders [three|four] times.")),
            weight=0.28, covered=0.1, rhythm=LEISURE,
        ),
        Stage(
            titles=("{sprinter.last} sprints to stage win in {sprint_town}", "{sprinter.last} wins stage {sprint_day:fig} of {name} from {beaten.last}", "{name}: {sprinter.last} fastest in {sprint_town}, takes {jersey} jersey", "{sprinter.team} deliver {sprinter.last} to stage victory in {sprint_town}", "Peloton catches {escapee.last} late as {sprinter.last} wins in {sprint_town}"),
            abstracts=("{sprinter.name} beat {beaten.name} at the end of {km} kilometres and leads the {name}.", "{escapee.name} was caught {caught:count kilometre} from the line. Then came the sprinters.", "A day of {weather} ended in a sprint at {speed} kilometres an hour."),
            leads=("{sprinter.name} won stage {sprint_day:fig} of the {name} in {sprint_town} {on}, beating {beaten.name} in a sprint.", "After {km} kilometres and {weather}, it came down to a sprint {on}: {sprinter.name} of {sprinter.team} was the quickest in {sprint_town} on stage {sprint_day:fig} of the {name}.", "{escapee.name} had been away for most of the day, but {caught:count kilometre} from {sprint_town} the peloton had {escapee.him}, and {sprinter.name} won stage {sprint_day:fig} of the {name}."),
            then=(say("“[I was boxed in, then somebody moved and I saw the line|I threw the bike and hoped|My lead-out was so fast that I nearly lost the wheel|It was a lottery and I'd bought all the tickets],” said {sprinter.last}, who rides for {sprinter.team}.", "{sprinter.last}, [who had punctured with thirty kilometres to go|third wheel at the last corner|in the wind too early], hit {speed} kilometres an hour. “[I counted to three and went on two|I heard {beaten.him} and couldn't see {beaten.him}],” {sprinter.he} said."),),
            loose=(say("{escapee.name}, a {escapee.of} rider with {escapee.team}, [had led alone for two hours|was the last of five to be caught]. “[You go because otherwise nobody knows you're here|For ten minutes I believed it],” {escapee.he} said."), say("{beaten.last} [banged the handlebars|congratulated {beaten.his} rival]. “[Half a wheel. I've lost by less and slept worse|The road bent and I went straight],” {beaten.he} said.", "{beaten.name}, second, [was relegated for a moment and then reinstated|had started the sprint from too far back]."), say("{sprinter.last} also takes the {jersey} jersey of the overall leader.", "The {jersey} jersey is now {sprinter.name:s}."), say("Favourites {first.name} and {other.name} finished safely in the bunch.", "{first.name} and {other.name} [stayed out of trouble|saved their strength]; {climb} comes on day {climb_day:fig}."), say("{fan.name}, who watched from a garden wall, said it was [over in nine seconds|like a train with elbows]. “[We had cake for three hours and then we blinked].”", "A fall [in the neutral zone|at a roundabout] held up twenty riders; nobody was badly hurt.")),
            weight=0.35, covered=0.25,
        ),
        Stage(
            titles=("{first.last} attacks on {climb} to take {name} lead", "{first.last} wins mountain stage, leads {other.last} by {mountain_gap}", "{name}: {first.last} takes {jersey} jersey on {climb}", "{first.last} drops {other.last} on {climb} to win stage {climb_day:fig}", "{climb:cap} shakes up {name} as {first.last} rides clear"),
            abstracts=("{first.name} leads {other.name} by {mountain_gap} with the time trial to come.", "An attack where the road rises to {ramp}% settled the mountain stage. {first_team.name} have the {jersey} jersey.", "{first.name} won alone in {weather}; {third.name} lost contact before the top."),
            leads=("{first.name} attacked where {climb} is steepest {on}, won the {climb_day:ord} stage of the {name} and took the lead, {mountain_gap} ahead of {other.name}.", "Only {other.name} could answer when {first.name} went on the slopes of {climb} {on}, and not for long. {first.last} leads the {name} by {mountain_gap}.", "The {name} has a new leader: {first.name} of {first.team} was first at the top of {climb} {on}, through {weather}."),
            then=(say("“[I said I'd wait, and then I looked at their faces|I didn't plan it, my legs were in a hurry|You can't hear anything up there, only yourself],” said {first.last}.", "{first.last} [had to be held up at the line|was still shivering an hour later]. “[I never looked at the numbers, I looked at the snow|I went when it hurt the others as much],” {first.he} said."), say("{other.last} limited the damage. “[It was one acceleration too many|It's {mountain_gap}, I can live with that],” {other.he} said.", "“[I blew up, I recovered, I blew up again|I rode my own pace, which was the wrong one],” said {other.last}, second overall.")),
            loose=(say("{climb:cap} rises at {gradient}% on average and {ramp}% near the top.", "Where the road reached {ramp}%, [riders zigzagged|only eleven were left in the group]."), say("{third.name} of {third.team} is third overall.", "{third.name}, of {third.team}, [rode in third|came in third, alone]."), say("{youth.name}, the youngest in the front group, [lost touch two bends from the top|was the surprise of the day]. “[I thought that they'd slowed down for me|My poster of {first.last} is coming off the wall],” {youth.he} said."), say("{sprinter.name}, the leader until then, came in [with the last group|nineteen minutes down]. “[It was a nice jersey and it's a steep hill].”"), say("{fan.name}, who had [camped on the verge|walked up at dawn], ran beside the riders [in a bath towel|with a cowbell]. “[I lasted twenty metres and I'm proud of every one].”", "{first_team.boss.name}, who manages {first_team.name}, [was hoarse|warned against celebrations]. “[The clock doesn't care about panache|One good day is one good day].”")),
            weight=0.45, covered=0.3,
        ),
        Stage(
            titles=("{turned}{other.last} wins time trial to take {name} lead", "{turned}{other.last} turns {name} upside down against the clock", "{kept}{first.last} keeps {jersey} jersey by {after_clock} after time trial", "{kept}{other.last} wins time trial, but {first.last} clings on at {name}", "{clock_km} kilometres in {clock_town}: {other.last} gains {lost} in time trial"),
            abstracts=("{turned}{other.name} gained {lost} on {first.name} and now leads by {after_clock}.", "{kept}{first.name} lost {lost} to {other.name} in {clock_town} and still leads by {after_clock}.", "{other.name} was the fastest over {clock_km} kilometres in {clock_town}."),
            leads=("{turned}{other.name} took the lead of the {name} from {first.name} {on}, gaining {lost} in a time trial of {clock_km} kilometres in {clock_town}.", "{kept}{first.name} lost {lost} to {other.name} against the clock in {clock_town} {on}, but saved the {jersey} jersey of the {name} by {after_clock}.", "Riding alone for {clock_km} kilometres round {clock_town}, {other.name} won the {clock_day:ord} stage of the {name} {on} and gained {lost} on {first.name}."),
            then=(say("“[I passed a bakery three times and could think of nothing else|I went too hard, and it was right|I had the split times written on my glove],” said {other.last}.",), say("{turned}“[The road was longer than on paper|That's what it is; there's a stage left and I have teammates],” said {first.last}.", "{kept}“[I've never been so happy to lose so much|I could see the jersey leaving and I pedalled after it],” said {first.last}.")),
            loose=(say("{weather:cap} made the corners [treacherous|slow]; {third.name} went down and got up again.", "{third.name}, of {third.team}, was [third|fourth] in the time trial and stays third overall."), say("{other_team.boss.name}, manager of {other_team.name}, had [driven the course nine times|ordered a smaller chainring overnight]. “[You win these things at breakfast|We gained as much in corners as on the straight].”"), say("The lead had changed hands {t2:on} on {climb}.", "On {climb}, {t2:on}, {first.last} had taken {mountain_gap}."), say("{youth.name} of {youth.team} [set an early best time|caught the rider in front]. “[I sat in the hot seat so long that I got cold].”"), say("The last stage ends in {finish} and is [flat, in theory|too easy for a revolution]." )),
            weight=0.4, covered=0.2,
        ),
        Stage(
            titles=("{winner.last} wins {name} by {after_clock}", "{winner.last} seals {name} victory in {finish}", "{name}: overall win for {winner.last}, last stage for {last_man.last}", "{winner.team} rider {winner.last} takes {name} ahead of {loser.last}", "{last_man.last} wins final sprint as {winner.last} takes {name} title"),
            abstracts=("{winner.name} finishes {after_clock} ahead of {loser.name}; {third.name} is third at {third_gap}.", "{last_man.name} won the last stage. Overall, nothing changed: {winner.name} by {after_clock}.", "The {nth:ord} {name} goes to {winner.name}, a {winner.of} rider with {winner.team}."),
            leads=("{winner.name} won the {name} {on}, finishing the last of its {days} stages in {finish} with a lead of {after_clock} over {loser.name}.", "There was no final attack. {winner.name} rode into {finish} in the bunch {on} and won the {name} by {after_clock}.", "The {name} has been won by {winner.name} of {winner.team}, after {days} stages that came down to {after_clock}."),
            then=(say("“[I'll sleep with it on|It began with a puncture and ended with champagne, I prefer this order|My father drove four hundred kilometres to see nothing but backs],” said {winner.last}.", "{winner.last} [thanked eight mechanics by name|had to borrow a clean jersey]. “[Ask me tomorrow what it means, today it means pasta|I was never calm, I've a calm face],” {winner.he} said."), say("{loser.last} was second, {third.name} of {third.team} third, at {third_gap}.", "On the podium stood {winner.last}, {loser.name} and, at {third_gap}, {third.name}.")),
            loose=(say("The final stage was won by {last_man.name} of {last_man.team}, [by a tyre|ahead of {beaten.name}].", "{last_man.name} ({last_man.team}) won the sprint in {finish}."), say("{turned}{loser.last} had led until the time trial. “[I lost it in {clock_km} kilometres and I'll find it again|Of {after_clock} I know where each one went].”", "{kept}{loser.last} had come within {after_clock} in the time trial. “[We tried everything except a taxi|Second is a place, too].”"), say("{director.last} spoke of “[the closest edition I can remember|a race decided by legs and not by luck]”."), say("{winner_team.boss.name:s} {winner_team.name} [have now won three stage races this year|had not won a stage race for two years].", "“[{winner.he:cap} does what I say, an hour later, which is why it works|We came for a stage and go home with the lot],” said {winner_team.boss.name}, the manager of {winner_team.name}."), say("{youth.name} was the best of the young riders.", "{escapee.name} was voted [most combative|unluckiest] rider of the race.")),
            weight=0.55, covered=0.4,
        ),
    ),
    share=1.1,
    rhythm=EVENING,
)  # fmt: skip


@dataclass(frozen=True)
class Classic:
    name: str
    c: Country
    women: str | None
    start: str
    end: str
    winner: Rider
    second: Rider
    third: Rider
    fav: Rider
    team: Team
    fan: Person
    director: Person
    climb: str
    km: int
    left: int
    sectors: int | None
    margin: str
    solo: str | None
    sprint: str | None
    weather: str
    nth: int
    starters: int
    finishers: int
    mishap: str
    times: tuple[datetime, ...]


_MISHAPS = ("a puncture at the worst moment", "a crash on wet tramlines", "a snapped chain", "stomach trouble", "a closed level crossing", "a dog on the road", "a bottle that rolled under a wheel", "a missed turn", "a crash in the feed zone", "cramp", "a motorcycle stuck in a ditch", "a lost shoe")  # fmt: skip


def _classic(scene: Scene) -> Classic:
    c = scene.country()
    end = scene.fresh("one-day race", c.cities).name
    start = scene.pick([city.name for city in c.cities if city.name != end])
    women = scene.chance(0.5)
    one, two, three, four = scene.sample(peloton(scene, women), 4)
    solo = scene.chance(0.5)
    pick = (
        scene.pick((one.climber, one.helper, one.clock)) if solo else scene.pick((one.sprinter, one.young, one.helper))
    )
    day = scene.start + timedelta(
        days=scene.pick([n for n in range(1, 8) if (scene.start + timedelta(days=n)).weekday() in (2, 5, 6)])
    )
    starters = scene.between(118, 172)
    return Classic(
        scene.pick((f"{start}-{end}", f"Grand Prix of {end}", f"{end} Classic", f"Three Towers of {end}", f"{end} Cobbles Race", f"Great {end} Circuit")), c, "" if women else None, start, end, pick, scene.pick((two.climber, two.sprinter)), scene.pick(three.riders), scene.pick((four.climber, four.sprinter)), one,
        scene.person(c), scene.person(c, "the race director"), scene.pick(climbs(c)), scene.between(128, 162) if women else scene.between(189, 258), scene.between(9, 44), scene.maybe(0.45, scene.between(5, 24)), gap(scene.between(11, 95)), "" if solo else None, None if solo else "", scene.pick(_WEATHER), scene.between(5, 97), starters, starters - scene.between(39, 84), scene.pick(_MISHAPS),
        (moment_on(day - timedelta(days=1), LEISURE, scene.rng), moment_on(day, _FINISH, scene.rng)),
    )  # fmt: skip


ONE_DAY = Beat(
    "one-day races",
    _classic,
    (
        Stage(
            titles=("{name}: {fav.last} the favourite for one-day race", "{fav.last} eyes {name} win", "{name} preview: {sectors} cobbled sectors and {climb} on the way to {end}", "{name}: {fav.last} and {second.last} tipped for one-day race", "{winner.last} a dark horse for {name}", "Riders face {climb} twice in {name}"),
            abstracts=("The {km}-kilometre race from {start} to {end} is held {t1:on}.", "{fav.name} of {fav.team} wants to add the {name} to {fav.his} list. {second.name} disagrees.", "Cobbles, {sectors} stretches of them, and one hill: what awaits the riders between {start} and {end}."),
            leads=("{fav.name} of {fav.team} is the rider to beat in the {name}, which is run for the {nth:ord} time {t1:on}.", "With {km} kilometres, {sectors} cobbled sectors and {climb} near the end, the {name} does not flatter anybody. {fav.name} starts as favourite {t1:on}.", "Between {start} and {end} lie {km} kilometres and {sectors} sectors of cobbles. Some {starters} riders will set out {t1:on}.", "It takes {km} kilometres to get from {start} to {end} by way of {climb}, and some {starters} riders mean to do it {t1:on}. {fav.name} is the favourite for the {name}.", "{director.name} has drawn {km} kilometres of road for the {name}, with {climb} as its last word. {fav.name} and {second.name} are tipped to win {t1:on}."),
            then=(say("“[I dream of that hill and never reach the top|It's a race you lose for ten years and then you win it|I ride it every spring and every spring it's longer],” said {fav.last}.", "{fav.name}, [who was second last year|who crashed here twelve months ago], [tried the cobbles {on}|spoke softly of {fav.his} chances]. “[My hands hurt, so they must be the right ones|Luck is a matter of being in front],” {fav.he} said."),),
            loose=(say("{second.name} ({second.team}) and {third.name} ({third.team}) are also named.", "{second.name}, for {second.team}, [has chosen wider tyres|skipped a race to be fresh]. “[If they all look at {fav.last}, I'll go|Everybody waits for {climb}; perhaps one shouldn't].”"), say("{director.last} [had straw bales put out|has had one sector swept]. “[Some of these stones are older than the country|We don't make it hard, we leave it as it is],” {director.he} said."), say("The forecast is for {weather}.", "{weather:cap}: that is what the forecasters expect."), say("{fan.name}, who lives beside the course near {end}, [rents out a balcony|has painted the road]. “[The whole street is out, and so is the soup|One year a rider came in to use the bathroom|My father stood here, with the same flag].”"), say("{team.name}, with {winner.name}, may [play another card|have the strongest squad]. “[We have three leaders, which is two more than last week|Our plan fits on a stamp|We ride for whoever is still upright],” said {team.boss.name}, the manager.")),
            weight=0.25, covered=0.05, chance=0.75,
        ),
        Stage(
            titles=("{solo}{winner.last} wins {name} alone after attack {left} km from finish", "{solo}{winner.last} rides solo to {name} victory", "{sprint}{winner.last} outsprints {second.last} to win {name}", "{sprint}{winner.last} wins {name} in photo finish", "{winner.team} rider {winner.last} [wins|takes] {name}", "{winner.last} beats {second.last} and {third.last} in {name}", "{mishap:cap} costs {fav.last} as {winner.last} wins {name}"),
            abstracts=("{solo}{winner.name} went clear on {climb} and won by {margin} from {second.name}.", "{sprint}{winner.name} beat {second.name} in {end} after {km} kilometres.", "The favourite, {fav.name}, was undone by {mishap}. {winner.name} took the {nth:ord} edition.", "Of {starters} riders who left {start}, {finishers} reached {end}. {winner.name} was the first."),
            leads=("{solo}{winner.name} of {winner.team} attacked {left} kilometres from {end} {on} and won the {name} by {margin}.", "{sprint}{winner.name} won the {name} {on}, beating {second.name} in a sprint of [five|four|seven] riders in {end}.", "{mishap:cap} put paid to {fav.name:s} hopes {on}; {winner.name} of {winner.team} won the {name}.", "After {km} kilometres of {weather}, {winner.name} was the first to reach {end} {on} and won the {name} for {winner.team}."),
            then=(say("{solo}“[I didn't know whether they were ten seconds behind or at home|I went early because I'd have lost late|For {left} kilometres I talked to my bicycle],” said {winner.last}.", "{sprint}“[I waited until it was almost too late, which is when it works|I had cramp in both legs, so it was fair|I didn't celebrate because I wasn't sure],” said {winner.last}.", "{winner.last}, [mud to the eyebrows|who had crashed in the week before|in tears], [could hardly speak|found few words]. “[I have watched this race on my grandmother's sofa|My hands have stopped working, please open this bottle],” {winner.he} said."), say("{second.name} of {second.team} was second and {third.name} third.", "Behind {winner.last}, {second.name} came second and {third.name} ({third.team}) third.", "{second.name}, second, [shook {second.his} head|was philosophical]. “[I was the strongest and it didn't help|You can't close every gap],” {second.he} said. Third was {third.name}.")),
            loose=(say("{fav.name}, the favourite, lost [all chance|contact] through {mishap}. “[I could laugh, in a year|That's what these roads do],” {fav.he} said.", "For {fav.name} the race ended [early|far from the finish]: {mishap}."), say("{climb:cap}, [climbed twice|second time up], had split the field into [four|three] groups.", "The race broke up on the [eighth|third|second] of {sectors} cobbled sectors."), say("Of {starters} starters, {finishers} finished.", "{weather:cap} left {finishers} of {starters} riders in the race."), say("“[We had a plan and {winner.last} had a better one|I shouted into the radio and found it was off],” said {team.boss.name}, who manages {team.name}."), say("{fan.name}, on a kitchen chair by the road, saw them pass [twice|three times]. “[The first were grey, the last were cheerful|Somebody threw me a bottle and I'm keeping it].”", "{director.last} called it “[the hardest edition in ten years|a race as it should be]”.")),
            weight=0.45, covered=0.35,
        ),
    ),
    share=1.0,
    rhythm=EVENING,
)  # fmt: skip


@dataclass(frozen=True)
class Event:
    name: str
    how: str
    turn: str
    timed: str | None


_EVENTS = (
    Event("sprint", "two rides to one", "after a standstill of forty seconds high on the banking", None),
    Event("keirin", "by half a wheel", "coming off the motorbike in fifth place", None),
    Event("individual pursuit", "in {time}", "having been a second down at half distance", ""),
    Event("points race", "with {points} points", "after gaining a lap in the last third", None),
    Event("omnium", "with {points} points", "after a poor opening race", None),
    Event("elimination race", "as the last left on the track", "from the outside, where nobody dares to ride", None),
    Event("scratch race", "by a length", "with an attack that everybody left to somebody else", None),
    Event("kilometre time trial", "in {time}", "with a start that lifted the front wheel", ""),
)


@dataclass(frozen=True)
class Track:
    e: Event
    c: Country
    city: str
    winner: Rider
    second: Rider
    third: Rider
    coach: Person
    fan: Person
    meet: str
    crowd: int
    lap: int
    time: str
    points: int
    degrees: int
    gear: str
    years: int


def _track(scene: Scene) -> Track:
    c = scene.country()
    one, two, three = scene.sample(peloton(scene, scene.chance(0.5)), 3)
    e = scene.deal("track event", _EVENTS)
    pick = scene.fresh("track winner", (one.young, one.clock, one.sprinter, one.helper))
    pursuit = (
        f"four minutes {scene.between(3, 19)}.{scene.between(101, 989)} seconds"
        if "pursuit" in e.name
        else f"{scene.between(57, 67)}.{scene.between(101, 989)} seconds"
    )
    return Track(e, c, scene.fresh("track city", c.cities).name, pick, two.young, three.clock, scene.person(c), scene.person(c), scene.pick(("World Cup", "Six Days", "national championships", "winter track league", "Grand Prix")), scene.near(900, 5_200), scene.between(2, 9), pursuit, scene.between(31, 88), scene.between(39, 45), f"{scene.between(54, 64)}x{scene.between(13, 16)}", scene.between(3, 21))  # fmt: skip


TRACK = Beat(
    "track cycling",
    _track,
    (
        Stage(
            titles=("{winner.last} wins {e.name} at {city} track {meet}", "Track cycling: {winner.last} beats {second.last} in {e.name}", "{winner.last} takes {e.name} gold in {city} velodrome", "{e.name:cap} upset in {city} as {winner.last} beats {second.last}", "{winner.of} rider {winner.last} rules the boards in {city}"),
            abstracts=("{winner.name} won {e.how}, {e.turn}.", "In front of {crowd} people, {second.name} came second and {third.name} third in the {e.name}.", "The {winner.of} rider won the {e.name} on a track banked at {degrees} degrees."),
            leads=("{winner.name} won the {e.name} at the track {meet} in {city} {on}, {e.how}.", "The {e.name} in the velodrome of {city} went to {winner.name} {on}, {e.turn}.", "{second.name} had been the favourite in the {e.name} in {city}, but it was {winner.name} who won {on}, {e.how}.", "The loudest cheer of the evening in {city} {on} was for {winner.name}, who won the {e.name} {e.turn}."),
            then=(say("“[On a track you can't hide, there isn't a corner|I heard the bell and forgot to be afraid|I looked back once, which is once too often, and there was nobody],” said {winner.last}.", "{winner.last}, a {winner.of} rider who spends the summer on the road with {winner.team}, [was out of breath|grinned]. “[Same legs, fewer trees|It's forty seconds of thinking and twelve of not thinking],” {winner.he} said.", "“[My gear was too big and my coach was right about it|There's a moment when the banking pushes you, and that's the race],” said {winner.last}."),),
            loose=(say("{second.name}, beaten into second place, [took it well|left without a word]. “[I had the inside and gave it away|I'd do the same again, half a second earlier],” {second.he} said."), say("{coach.name}, the {winner.of} coach, had [insisted on a gear of {gear}|asked for patience]. “[A race on the track is chess on a wall|We practise the last lap until it's boring].”", "A gear of {gear} and the cold boards [suited {winner.him}|made for slow times], said {coach.name}, who coaches the {winner.of} squad."), say("The track in {city} is banked at {degrees} degrees[ and {years} years old|].", "The velodrome held {crowd} people[, among them two school classes with whistles|]."), say("{third.name} of {third.team} was third[, {lap} laps after nearly falling|].", "Third place went to {third.name}[, who had come straight from a road race|]."), say("{fan.name}, in the stand, comes [every year|for the smell of the wood]. “[You can see all of it, that's what I like|On the road they pass, here they come back].”"), say("The {meet} goes on [tomorrow|at the weekend] with [the madison|the team pursuit|the juniors].", "In the team pursuit, {winner.last} [rides again|is down as a reserve].")),
            weight=0.25, covered=0.12,
        ),
    ),
    share=0.6,
    rhythm=EVENING,
)  # fmt: skip


@dataclass(frozen=True)
class Hour:
    rider: Rider
    team: Team
    c: Country
    city: str
    record: str
    done: str
    metres: int
    made: str | None
    failed: str | None
    holder: Rider
    coach: Person
    scientist: Person
    heat: int
    laps: int
    gear: str
    cost: Money
    years: int


def _hour(scene: Scene) -> Hour:
    women = scene.chance(0.5)
    one, two = scene.sample(peloton(scene, women), 2)
    c = scene.country()
    rider = scene.fresh("hour record", (one.clock,))
    record = scene.between(48_900, 50_200) if women else scene.between(55_100, 56_700)
    metres, made = scene.between(60, 740), scene.chance(0.5)
    done = record + metres if made else record - metres
    return Hour(rider, one, c, scene.pick(c.cities).name, f"{record / 1000:.3f}", f"{done / 1000:.3f}", metres, "" if made else None, None if made else "", two.clock, scene.person(c), scene.person(c), scene.between(26, 31), done // 250, f"{scene.between(60, 66)}x14", scene.money(6e4, 4e5, c.currency), scene.between(2, 9))  # fmt: skip


HOUR = Beat(
    "track cycling",
    _hour,
    (
        Stage(
            titles=("{rider.last} to attempt hour record in {city}", "{rider.last} takes aim at {holder.last}'s hour record", "Track cycling: {rider.last} wants more than {record} km in an hour"),
            abstracts=("The record, held by {holder.name}, stands at {record} kilometres. The attempt is planned {t1:on}.", "{rider.name} of {rider.team} will ride alone in the velodrome of {city}, at {heat} degrees."),
            leads=("{rider.name} will try to break the hour record in {city} {t1:on}, {rider.his} team, {rider.team}, said {on}.", "An hour, a track and nobody else: {rider.name} is to attack the record of {holder.name}, {record} kilometres, in {city}."),
            then=(say("“[It's the only race in which you can't blame anyone|You ride in circles to find out who you are, and you are tired|Everybody asks about the legs; it's the neck],” said {rider.last}."),),
            loose=(say("{holder.name}, who set the mark of {record} kilometres {years} years ago, [wished {rider.him} luck|will be there]. “[Records are rented|I hope for a draughty door].”"), say("The hall will be heated to {heat} degrees, since warm air is thinner.", "At {heat} degrees, {scientist.name}, an aerodynamicist, reckons, the air is worth [two hundred|nearly three hundred] metres."), say("A gear of {gear} has been chosen.", "{rider.last} has trained [behind a motorcycle|at altitude, on a treadmill] and will push a gear of {gear}."), say("“[The schedule is one line, and it's horizontal|If it goes wrong, it goes wrong after thirty-five minutes],” said {coach.name}, {rider.his} coach."), say("The attempt costs about {cost}, [timing and doping control included|most of it for the hall].")),
            weight=0.3, covered=0.1,
        ),
        Stage(
            titles=("{made}{rider.last} breaks hour record with {done} km", "{made}Hour record: {rider.last} adds {metres} metres to {holder.last}'s mark", "{failed}{rider.last} falls {metres} metres short of hour record", "{failed}Hour record stands as {rider.last} fades in {city}", "{rider.last} rides {done} km in an hour on {city} track"),
            abstracts=("{made}{rider.name} covered {done} kilometres in {city}, {metres} metres more than {holder.name}.", "{failed}{rider.name} covered {done} kilometres in {city}. The record of {holder.name} is {record}."),
            leads=("{made}{rider.name} broke the hour record {on}, covering {done} kilometres on the track in {city}, {metres} metres more than {holder.name} had managed.", "{failed}{rider.name} missed the hour record by {metres} metres {on}. In {city} {rider.he} covered {done} kilometres; {holder.name:s} mark is {record}."),
            then=(say("{made}“[I'll never do it again, write that down|At forty minutes I hated everyone, at fifty I loved them|I could hear my mother above the bell],” said {rider.last}.", "{failed}“[I went out too fast, I knew it, and I couldn't stop|I left it in the first twenty minutes|I have never been so lonely in front of so many people],” said {rider.last}."),),
            loose=(say("{rider.last} rode {laps} laps and [had to be lifted off the bicycle|could not sit down for an hour afterwards].", "It took {laps} laps, [the last of them on nerves alone|the fastest of them at the end]."), say("{made}{holder.name}, whose record had stood for {years} years, was the first to shake {rider.his} hand. “[It was lent to me, I said so].”", "{failed}{holder.name}, whose record has stood for {years} years, [was relieved|had hardly been able to look]. “[I know every one of those last ten minutes].”"), say("“[The numbers were right until a body had to do them|The black line gets narrower, they all say so],” said {coach.name}, the coach."), say("The gear was {gear}, the temperature {heat} degrees.", "{scientist.name}, who worked on the position, blamed or praised [the heat|the skin suit], at {heat} degrees, “according to taste”."), say("The attempt had been announced {t0:on}.")),
            after=(3, 6), weight=0.5, covered=0.3, rhythm=EVENING,
        ),
    ),
    share=0.35,
    rhythm=LEISURE,
)  # fmt: skip

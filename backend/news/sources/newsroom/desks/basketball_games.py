# ruff: noqa: E501 (prose reads better unbroken)
"""How the basketball desk reports games, of the leagues and of the national teams."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.basketball_league import Club, Game, seasons
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import EVENING, LEISURE, OFFICE, moment_on
from backend.news.sources.newsroom.world import Country


def games(scene: Scene) -> tuple[Game, ...]:
    return scene.world.kept("basketball seasons", lambda: seasons(scene.world, scene.world.now))


def clubs(scene: Scene) -> tuple[Club, ...]:
    return tuple({club.name: club for game in games(scene) for club in (game.home, game.away)}.values())


@dataclass(frozen=True)
class Report:
    g: Game
    w: Club
    l: Club  # noqa: E741 (as in the forms: winner and loser)
    score: str
    margin: int
    half: str
    star: Person
    star_points: int
    second: Person
    second_points: int
    loser_star: Person
    loser_points: int
    rebounds: int
    assists: int
    threes: int
    crowd: int
    w_record: str
    l_record: str
    w_place: int
    l_place: int
    run: int | None
    slump: int | None
    close: str | None
    rout: str | None
    extra: str | None
    comeback: int | None
    away_win: str | None
    home_win: str | None
    free: int
    fan: Person
    referee: Person
    left: int
    leader: str
    times: tuple[datetime, ...]


def _report(scene: Scene) -> Report:
    every = games(scene)
    near = [game for game in every if game.at <= scene.world.now and scene.world.now - game.at < timedelta(days=15)]
    g = scene.fresh("basketball game", near)
    one, two = g.score
    won = one > two
    w, lost = (g.home, g.away) if won else (g.away, g.home)
    turn = 1 if won else -1
    high, low = max(one, two), min(one, two)
    halves = [sum(quarter[side] for quarter in g.quarters[:2]) for side in (0, 1)][::turn]
    best = sorted(w.squad, key=lambda player: -g.points[player.name])
    top = max(lost.squad, key=lambda player: g.points[player.name])
    streaks, places, records = g.streaks[::turn], g.places[::turn], g.records[::turn]
    return Report(
        g, w, lost, f"{high}-{low}", high - low, f"{halves[0]}-{halves[1]}", best[0], g.points[best[0].name], best[1], g.points[best[1].name], top, g.points[top.name],
        scene.between(7, 15), scene.between(4, 12), scene.between(3, 6), scene.near(1_900, 11_800), records[0], records[1], places[0], places[1],
        streaks[0] if streaks[0] >= 3 else None, -streaks[1] if streaks[1] <= -3 else None, "" if high - low <= 5 else None, "" if high - low >= 17 else None, "" if g.extra else None, halves[1] - halves[0] if halves[1] > halves[0] else None,
        None if won else "", "" if won else None, scene.between(11, 24), scene.person(w.country), scene.person(w.country), scene.between(4, 48), g.leader, (g.at + timedelta(hours=2, minutes=scene.between(5, 50)),),
    )  # fmt: skip


GAME = Beat(
    "league games",
    _report,
    (
        Stage(
            titles=(
                "{star.last} scores {star_points} as {w.name} beat {l.name} {score}", "{close}{w.name} edge {l.name} {score} in basketball thriller", "{rout}{w.name} rout {l.name} {score}", "{extra}{w.name} beat {l.name} {score} after overtime", "{w.name} come back from {comeback} down to beat {l.name}", "{w.name} win {run:ord} game in a row, {score} against {l.name}",
                "{l.name} lose {slump:ord} straight game, {score} to {w.name}", "{away_win}{w.name} win {score} on road at {l.name}", "{star.last} and {second.last} lead {w.name} past {l.name}", "{close}Free throws decide it: {w.name} {score} {l.name}", "{home_win}{w.name} hold court against {l.name}, {score}", "Basketball: {loser_star.last}'s {loser_points} points not enough for {l.name}", "{star.last} hits {threes} threes in {w.name} win over {l.name}",
            ),
            abstracts=(
                "{star.name} had {star_points} points and {rebounds} rebounds in a {score} win that puts {w.name} {w_place:ord}.", "{w.name} led {half} at half-time and won {score}. {loser_star.name} scored {loser_points} for {l.name}.", "{w.name} are now {w_record} in the {w.league}; {l.name} fall to {l_record}.", "{close}A game with {left} seconds of nerves: {w.name} {score} {l.name}.", "{rout}{l.coach.name} called two time-outs in the first quarter. {w.name} won by {margin}.",
                "In front of {crowd} people, {second.name} added {second_points} points to the {star_points} of {star.name}.",
            ),
            leads=(
                "{star.name} scored {star_points} points {on} as {w.name} beat {l.name} {score} in the {w.league}.", "{close}{w.name} beat {l.name} {score} {on}, after {star.name} had scored with {left} seconds to go.", "{rout}It was over by half-time: {w.name} led {half} and beat {l.name} {score} {on}.", "{extra}Four quarters were not enough {on}. {w.name} beat {l.name} {score} after overtime, with {star_points} points from {star.name}.",
                "{w.name} were {comeback} points down at half-time {on} and beat {l.name} {score} all the same.", "{w.name} have won {run} games in a row after a {score} win over {l.name} {on}.", "{l.name} suffered a {slump:ord} defeat in a row {on}, {score} to {w.name}, in spite of {loser_points} points from {loser_star.name}.", "{away_win}{w.name} went to {l.arena} {on} and came away with a {score} win over {l.name}.",
                "{home_win}A crowd of {crowd} at {w.arena} saw {w.name} beat {l.name} {score} {on}.", "{star.name} ({star_points}) and {second.name} ({second_points}) did most of the scoring as {w.name} beat {l.name} {score} {on}.",
            ),
            then=(
                say("“[We defended with our feet for once|It's a game of runs, and ours was the last one|I asked for rebounds and got rebounds and cheek|They shot well; we shot later],” said {w.coach.name}, who coaches {w.name}.", "{w.coach.name}, the {w.name} coach, [singled out|praised] {second.name}. “[{second.he:cap} takes the shots that nobody wants|{second.he:cap} talks for forty minutes, I could do with ten|Look at the defence, not at the points],” {w.coach.he} said.", "“[I missed my first five, and they kept passing to me, so thank them|My grandmother texted me at half-time: shoot|The rim looked as wide as a door],” said {star.name}, who had {star_points} points.", "{star.name} [hit {threes} times from outside|was perfect from the line|sat for most of the third quarter with four fouls]. “[You shoot until it drops, and then you shoot again|The hands remember|I like the corner, nobody talks to you there|I could hear my father counting],” {star.he} said."),
            ),
            loose=(
                say("{star.last} finished with {star_points} points, {rebounds} rebounds and {assists} assists; {second.name} added {second_points} points.", "{second.name} had {second_points} points and {assists} assists; {w.centre.name} [held the middle|was in foul trouble early].", "{w.name} took {rebounds} rebounds more than {l.name} and [made the most of them|turned them into fast breaks]."),
                say("{loser_star.name} scored {loser_points} for {l.name}[, most of it in vain|, many from outside|].", "For {l.name}, {loser_star.name} was the best with {loser_points} points."),
                say("“[We stopped passing and started hoping|You can't give away {free} free throws|I have no complaint, only a headache|We were soft, and I've told them so in fewer words],” said {l.coach.name}, the coach of {l.name}.", "{l.coach.name}, in charge of {l.name}, [blamed {free} turnovers|spoke of tired legs]. “[We have two days, and a lot to forget|I saw effort, I saw air balls|The bus home is long enough for everything I want to say|Shots come back, like cats],” {l.coach.he} said."),
                say("It was {half} at half-time.", "{w.name} had been {comeback} points behind at the break.", "At the break the score was {half}, [seen from the winners' side|as far as {w.name} were concerned]."),
                say("{w.name} are {w_record} and {w_place:ord} in the {w.league}, which {leader} lead.", "The result leaves {w.name} with a record of {w_record}, {l.name} with {l_record}.", "{l.name}, now {l_record}, are {l_place:ord}."),
                say("{fan.name}, in row [nine|two|twenty], had [lost {fan.his} voice|brought a drum]. “[I closed my eyes for the last free throw|It's warmer here than at home, and louder].”", "{referee.name}, who refereed, called {free} fouls in the [first half|last quarter] alone.", "The attendance was given as {crowd}.", "{w.rookie.name}, a rookie, [got four minutes and two points|was given the last shot of the third quarter, and made it]."),
            ),
            weight=0.35, covered=0.22,
        ),
        Stage(
            titles=("{l.coach.last} wants answers after {l.name} lose to {w.name}", "{w.coach.last} plays down {w.name} win over {l.name}", "{star.last} named player of round after {star_points}-point game", "What {l.name} must mend after {score} defeat", "{w.name} centre {w.centre.last} fined after game against {l.name}"),
            abstracts=("The morning after {score}: {l.coach.name} has watched it twice.", "{star.name} of {w.name} scored {star_points} against {l.name}.", "{w.coach.name} and {l.coach.name} look back on {score}, and on a foul by {w.centre.name}."),
            leads=("{l.name} were back in the gym {on} after their {score} defeat by {w.name}, and {l.coach.name} had questions.", "{star.name}, who scored {star_points} points for {w.name} against {l.name}, was named player of the round {on}.", "The {score} win over {l.name} will cost {w.name} a little: {w.centre.name} was fined {on} for words to an official."),
            then=(say("“[We watched the second quarter without sound, it was no better|I'm not angry, I'm precise|I said four words and they wrote all of them down],” said {l.coach.name}, who coaches {l.name}.", "“[One game. We have lost to worse|The table is a photograph, we're in a film],” said {w.coach.name}, the coach of {w.name}."), say("{w.coach.name}, whose {w.name} had won, [asked for calm|gave the team a free afternoon]. “[{w.centre.last} apologised, I'd have done it sooner|They'll hear about the third quarter from me].”", "{w.centre.name} was fined for [a word to an official|a clenched fist], {w.name} said. “[I'd pay twice, it needed saying|I said it to myself, loudly],” {w.centre.he} said.")),
            loose=(say("{loser_star.name}, with {loser_points} points the best for {l.name}, [shot alone for an hour|stayed on for treatment]."), say("{second.name} of {w.name} [has a sore wrist|missed practice with a cold].", "{w.name} came through without injuries."), say("In the table of the {w.league}, {w.name} are {w_place:ord} and {l.name} {l_place:ord}."), say("“[I'd rather be tired than rested and beaten|We eat together now, it helps with passing],” said {w.captain.name}, the {w.name} captain.", "{l.captain.name}, the captain of {l.name}, called a meeting without the coach. “[Nobody shouted, two people cried].”"), say("The game had been watched by {crowd} people."), say("{leader} lead the {w.league}.")),
            after=(0.5, 0.8), weight=0.2, chance=0.3, covered=0.0,
        ),
    ),
    share=1.8,
    rhythm=EVENING,
)  # fmt: skip


@dataclass(frozen=True)
class Qualifier:
    c: Country
    foe: Country
    side: str
    event: str
    coach: Person
    star: Person
    veteran: Person
    left_out: Person
    newcomer: Person
    foe_star: Person
    foe_coach: Person
    fan: Person
    score: str
    half: str
    won: str | None
    lost: str | None
    points: int
    foe_points: int
    age: int
    caps: int
    city: str
    crowd: int
    seconds: int
    reason: str
    times: tuple[datetime, ...]


def _qualifier(scene: Scene) -> Qualifier:
    c = scene.country("basketball nation")
    foe = scene.pick([other for other in scene.world.countries if other is not c])
    women = scene.chance(0.5)
    low = scene.between(61, 88)
    high = low + scene.between(1, 19)
    won = scene.chance(0.5)
    half = (scene.between(30, 46), scene.between(30, 46))
    one, two, three, four = (scene.person(c, she=women) for _ in range(4))
    day = scene.start + timedelta(days=scene.between(3, 5))
    return Qualifier(c, foe, "women" if women else "men", scene.pick(("World Cup", "continental championship", "Olympic tournament")), scene.person(c, "the national coach"), one, two, three, four, scene.person(foe, she=women), scene.person(foe), scene.person(c), f"{high}-{low}", f"{half[0]}-{half[1]}", "" if won else None, None if won else "",
                     scene.between(18, 33), scene.between(19, 34), scene.between(17, 20), scene.between(61, 178), scene.pick(c.cities).name, scene.near(2_800, 14_500), scene.between(2, 51), scene.pick(("a quarrel over insurance", "a late return from injury", "a missed camp", "a difference over minutes", "a club that would not release its player", "a remark on the radio", "a lack of defence")),
                     (moment_on(scene.start, OFFICE, scene.rng), moment_on(day, EVENING, scene.rng)))  # fmt: skip


NATIONAL = Beat(
    "national teams",
    _qualifier,
    (
        Stage(
            titles=("{c.name} leave out {left_out.last} for basketball qualifier against {foe.name}", "{newcomer.last}, {age}, in {c.demonym} basketball squad", "{coach.last} names {c.name} squad for {event} qualifier", "No {left_out.last}: {c.demonym} {side} go into {event} qualifier without star"),
            abstracts=("{coach.name} has picked {newcomer.name}, {age}, and dropped {left_out.name} over {reason}.", "{c.name} meet {foe.name} in {city} {t1:on}. {left_out.name} will watch on television."),
            leads=("{coach.name} named the {c.demonym} {side}'s squad for the {event} qualifier against {foe.name} {on}, and left out {left_out.name}.", "{newcomer.name}, who is {age}, is in the {c.demonym} squad that meets {foe.name} in {city} {t1:on}; {left_out.name} is not.", "{c.name} will play {foe.name} without {left_out.name}. The coach of the {side}, {coach.name}, cited {reason}."),
            then=(say("“[I pick a team, not a list of the best|The door is open and I've put a mat in front of it|You can't defend a reputation at both ends],” said {coach.last}.",),),
            loose=(say("{left_out.last}, [a regular for six years|until now a starter], [wished the team luck|let an agent answer].", "“[I found out from the website|I'd have come for a bus ticket],” said {left_out.name}."), say("{newcomer.name} [still goes to school|has played one season as a professional]. “[I had a mathematics test and the telephone rang|I thought it was a friend with a funny voice].”"), say("{veteran.name}, with {caps} games the most experienced, [will lead the team|approves]. “[We've been eleventh, we've been fourth; I liked fourth|{foe.name} are taller, we're ruder].”"), say("{foe.name} can count on {foe_star.name}, [who averages {foe_points} points|their leading scorer]."), say("Tickets for {city} are [sold out|going fast]; the hall takes {crowd}."), say("Two of three teams in the group go through to the {event}.", "The {event} is the aim; a win in {city} would bring {c.name} closer.", "A defeat would make the {event} a distant prospect.")),
            weight=0.28, covered=0.1,
        ),
        Stage(
            titles=("{won}{star.last} leads {c.name} past {foe.name} in {event} qualifier", "{won}{c.name} beat {foe.name} {score} in basketball qualifier", "{won}{c.demonym} {side} close in on {event} after {score} win", "{lost}{foe.name} beat {c.name} {score} in basketball qualifier", "{lost}{c.demonym} {side} face {event} exit after {score} defeat", "{lost}{foe_star.last} scores {foe_points} to sink {c.name}"),
            abstracts=("{won}{star.name} scored {points} points in {city}, the last of them with {seconds} seconds left.", "{lost}{foe_star.name} scored {foe_points} for {foe.name}. {star.name} had {points} for {c.name}.", "{won}A crowd of {crowd} in {city} saw the {side} of {c.name} beat {foe.name} {score}.", "{lost}{foe.name} won {score} in {city}, and the name of {left_out.name} was called from the stands."),
            leads=("{won}{c.name} beat {foe.name} {score} in {city} {on}, with {points} points from {star.name}, and need one more win to reach the {event}.", "{lost}{c.name} lost {score} to {foe.name} in {city} {on} and must now win their last game to reach the {event}.", "{lost}{foe_star.name} scored {foe_points} points {on} as {foe.name} beat the {c.demonym} {side} {score}.", "{won}In a hall that shook, {star.name} scored {points} points {on} and {c.name} beat {foe.name} {score}."),
            then=(say("{won}“[I've waited {caps} games for one like that|We were eleven down and nobody looked at the bench|We won it on the boards],” said {veteran.name}, who has played {caps} times for {c.name}.", "{lost}“[We had the shot we wanted and it didn't want us|I take the blame, it's what I'm for],” said {coach.last}.", "{won}“[They believed me, I'm not sure that I did|It was ugly and I'll frame it],” said {coach.last}."),),
            loose=(say("{foe_star.name} had {foe_points} points for {foe.name}.", "“[We came for a win and got a lesson|It's loud here; I liked it],” said {foe_coach.name}, who coaches {foe.name}."), say("{newcomer.name}, {age}, came on [in the second quarter|with five minutes to go] and [scored with {newcomer.his} first shot|stole two balls]."), say("{left_out.last}, left out over {reason}, [was in the hall|sent a message]. “[I shouted with everyone|One doesn't stop being a fan].”", "There were calls for {left_out.name}, who had been left out {t0:on}."), say("It had been {half} at half-time.", "The score at the break, {half} from the home side's point of view, [flattered nobody|had promised less]."), say("{fan.name}, [wrapped in a flag|who had driven through the night], [wept a little|shook hands with a stranger]. “[I taught half of them at primary school|My heart has filed a complaint].”"), say("The hall in {city} was filled with {crowd} people.")),
            weight=0.48, covered=0.3,
        ),
        Stage(
            titles=("{won}{c.name} celebrate after basketball win over {foe.name}", "{lost}{coach.last} under fire after {c.name} lose to {foe.name}", "{left_out.last} could return for {c.name}, says {coach.last}", "{newcomer.last}, {age}, the talk of {c.demonym} basketball"),
            abstracts=("{coach.name} leaves the door open for {left_out.name} after {score} against {foe.name}.", "{newcomer.name} has been back at school since the qualifier."),
            leads=("{won}After the {score} win over {foe.name}, {coach.name} said {on} that {left_out.name} might be back for the last qualifier.", "{lost}{coach.name} answered critics {on}, after the {score} defeat by {foe.name}, and said {left_out.name} might return.", "{newcomer.name}, the {age}-year-old who played for {c.name} against {foe.name}, [was cheered at school|had to sign a plaster cast] {on}."),
            then=(say("“[I've spoken to {left_out.him}; it was a good call and a long one|Pride is a bad assistant coach|We'll see who is fit and who is friendly],” said {coach.last}.",),),
            loose=(say("{left_out.name}, left out over {reason}, [did not rule it out|would think about it]. “[I've a bag by the door].”"), say("“[I got a detention for being late|They asked me for height in centimetres and for a selfie],” said {newcomer.name}."), say("{veteran.name} [has ice on both knees|thinks of stopping after the summer]. “[After {caps} games, my ankles know the airports|I want to stop before somebody asks].”"), say("{foe.name} travel on to their next game with {foe_star.name}, who had scored {foe_points}."), say("One place in the {event} is still open.")),
            after=(1, 2), weight=0.2, chance=0.6, rhythm=LEISURE,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip

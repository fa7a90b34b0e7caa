# ruff: noqa: E501 (prose reads better unbroken)
"""How the football desk follows a match: preview, report, reaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.grammar import listed, number, ordinal
from backend.news.sources.newsroom.league import Club, Goal, Match, seasons
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import EVENING


@dataclass(frozen=True)
class MatchFacts:
    """A match told from the winner's side, or from the home side after a draw (`w`, `l` are then home and away).

    Facts that hold only for some matches are None for the others; the empty ones only open a wording.
    """

    m: Match
    times: tuple[datetime, ...]
    w: Club
    l: Club  # noqa: E741
    home: Club
    away: Club
    score: str
    win: str | None
    draw: str | None
    goalless: str | None
    away_win: str | None
    rout: str | None
    narrow: str | None
    comeback: str | None
    hat_trick: Person | None
    brace: Person | None
    opener: Goal | None
    second: Goal | None
    only: Goal | None
    last: Goal | None
    late: Goal | None
    w_opener: Goal | None
    opener_side: str | None
    opener_foe: str | None
    leveller: Goal | None
    scorers: str | None
    w_place: int
    l_place: int
    w_points: int
    leaders: str | None
    run: str | None
    slump: str | None
    crowd: int
    saves: int
    shots: int
    corner: str
    doubt: Person
    doubt_club: Club
    doubt_part: str
    referee: Person
    kickoff: str
    cards: int
    run_nth: str | None


def _streak(marks: str) -> int:
    """How often the last mark stands at the end."""
    return len(marks) - len(marks.rstrip(marks[-1])) if marks else 0


def _match(scene: Scene) -> MatchFacts:
    now = scene.world.now
    matches = scene.world.kept("football seasons", lambda: seasons(scene.world, now))
    m = scene.fresh("football match", [match for match in matches if match.at > now - timedelta(days=14)])
    home_goals = sum(goal.home for goal in m.goals)
    away_goals = len(m.goals) - home_goals
    draw = home_goals == away_goals
    home_won = home_goals >= away_goals
    w, l = (m.home, m.away) if home_won else (m.away, m.home)  # noqa: E741
    high, low = max(home_goals, away_goals), min(home_goals, away_goals)
    tally: dict[str, list[Goal]] = {}
    for goal in m.goals:
        tally.setdefault(goal.by.name, []).append(goal)
    by_winner = [goals for goals in tally.values() if goals[0].home == home_won]
    hat_trick = next((goals[0].by for goals in by_winner if len(goals) >= 3 and not draw), None)
    brace = next((goals[0].by for goals in by_winner if len(goals) == 2 and not draw), None)
    opener = m.goals[0] if len(m.goals) > 1 else None
    only = m.goals[0] if len(m.goals) == 1 else None
    last = m.goals[-1] if m.goals else None
    decisive = last is not None and last.minute >= 83 and high - low <= 1 and (draw or last.home == home_won)
    comeback = opener is not None and not draw and opener.home != home_won
    scorers = (
        listed([f"{goals[0].by.name} ({', '.join(str(goal.minute) for goal in goals)})" for goals in tally.values()])
        if tally
        else None
    )
    w_streak, l_streak = (m.home_streak, m.away_streak) if home_won else (m.away_streak, m.home_streak)
    run, slump = _streak(w_streak), _streak(l_streak)
    doubt_club = scene.pick((m.home, m.away))
    # Somebody who then scores can't have been in doubt for long.
    fit = [
        one
        for one in (doubt_club.defender, doubt_club.midfielder, doubt_club.winger, doubt_club.forward)
        if one.name not in tally
    ]
    preview = m.at - timedelta(hours=scene.between(20, 29), minutes=scene.between(0, 59))
    report = m.at + timedelta(minutes=scene.between(116, 160))
    reaction = m.at.replace(hour=9) + timedelta(days=1, minutes=scene.between(-90, 400))
    return MatchFacts(
        m, (preview, report, reaction), w, l, m.home, m.away, f"{high}-{low}", None if draw else "", "" if draw else None,
        "" if not m.goals else None, "" if not home_won else None, "" if high - low >= 3 else None,
        "" if high - low == 1 else None, "" if comeback else None, hat_trick, brace, opener,
        m.goals[1] if len(m.goals) > 1 else None, only,
        last if opener is not None and last is not None and last.by != opener.by else None, last if decisive else None,
        opener if opener is not None and not draw and opener.home == home_won else None,
        None if opener is None else (m.home if opener.home else m.away).name,
        None if opener is None else (m.away if opener.home else m.home).name,
        last if draw and m.goals else None, scorers, m.home_place if home_won else m.away_place,
        m.away_place if home_won else m.home_place, m.home_points if home_won else m.away_points,
        m.leaders if m.leaders not in (w.name, l.name) else None,
        number(run) if not draw and run >= 2 else None,
        number(slump) if not draw and slump >= 3 else None,
        scene.near(6_000, 42_000), scene.between(3, 8), scene.between(11, 24),
        scene.pick(("in cold drizzle", "on a clear evening", "on a heavy pitch", "under low cloud", "in front of a restless crowd",
                    "in a swirling wind", "with the terraces full")),
        scene.pick(fit) if fit else doubt_club.keeper, doubt_club, scene.pick(("hamstring", "ankle", "groin", "calf", "knee", "back")),
        scene.person(m.home.country, "the referee"), f"{m.at:%H:%M}", scene.between(2, 7),
        ordinal(run) if not draw and w_streak[-1] == "W" and run >= 2 else None,
    )  # fmt: skip


MATCH = Beat(
    "match reports",
    _match,
    (
        Stage(
            titles=(
                "{home.name} v {away.name}: {doubt.last} [a doubt|in doubt] with {doubt_part} [injury|problem]",
                "{away.name} travel to {home.name} as {doubt.last} [faces late fitness test|races to be fit]",
                "Preview: {home.name} against {away.name} in the {home.league}",
                "{home.coach.last} wants a fast start from {home.name} against {away.name}",
                "{away.coach.last} warns {away.name} players about trip to {home.name}",
            ),
            abstracts=(
                "{home.name} meet {away.name} {m.at:on}. {doubt.name} is waiting on a {doubt_part} scan.",
                "The {home.league} match is at {home.ground} {m.at:on}; {doubt_club.name} may be without {doubt.name}.",
                "“[It is a ground where you earn everything|They will not give us ten quiet minutes],” says {away.coach.name}, whose {away.name} side visit {home.name}.",
            ),
            leads=(
                "{home.name} receive {away.name} {m.at:on} in the {home.league}, with {doubt_club.name} still unsure whether {doubt.name} will be fit.",
                "{doubt.name} has a {doubt_part} problem and {doubt_club.name} have a decision to make before {home.name} and {away.name} meet at {home.ground} {m.at:on}.",
                "{away.name} go to {home.ground} {m.at:on} to face {home.name}, and both coaches have spent the week talking down their chances.",
            ),
            then=(
                say("“[We will look at {doubt.him} in the morning|If {doubt.he} can run, {doubt.he} plays|I am not going to gamble with {doubt.him}],” said {doubt_club.coach.name}, the {doubt_club.name} coach.",
                    "{doubt_club.coach.name}, the coach of {doubt_club.name}, [would not be drawn|kept {doubt_club.coach.his} cards close]. “[Ask me an hour before kick-off|The physio decides, not me],” {doubt_club.coach.he} said."),
            ),
            loose=(
                say("“[They press high and they mean it|We know what is coming: long throws and no mercy],” said {away.coach.name}. “[If we are brave with the ball we will have chances|The first quarter of an hour decides whether we enjoy it].”", "{away.coach.name}, in charge of {away.name}, [promised changes|gave little away]. “[I have eleven in my head and twelve are fit|We were there last year and I remember the wind|Nobody likes to play us just now, and I like that],” {away.coach.he} said.", "“[I have watched four of their games and slept through none|A good start would help, a good end would help more],” said {away.coach.name}, who coaches {away.name}."),
                say("{home.captain.name}, the {home.name} captain, expects [a tight game|few chances]. “[One mistake, one set piece, that is usually it|I would take an ugly goal now],” {home.captain.he} said.", "{home.coach.name}, the {home.name} coach, [wants more width|asked for patience from the stands]. “[We train corners on a Thursday, and people laugh|The table looks at you over breakfast],” {home.coach.he} said.", "“[The dressing room has been loud, which is good|You play these for the children at the fence],” said {home.captain.name}, who captains {home.name}."),
                say("{home.striker.name} is likely to lead the {home.name} attack, with {home.winger.name} wide.", "{away.name} will look to {away.striker.name} for goals and to {away.keeper.name} to keep them out."),
                say("{referee.name} is in charge. Kick-off is at {kickoff}.", "{referee.name}, who is refereeing {home.name} for the first time this season, is in the middle; kick-off is at {kickoff}.", "They kick off at {kickoff}, with {referee.name} as referee.", "{home.ground:cap} opens [two hours|ninety minutes] before kick-off at {kickoff}. The referee is {referee.name}."),
                say("Around {crowd} are expected at {home.ground}.", "Tickets for {home.ground} [are nearly gone|sold slowly at first, then all at once]; around {crowd} are expected."),
            ),
            weight=0.3,
            chance=0.55,
        ),
        Stage(
            titles=(
                "{hat_trick.last} hat-trick [powers|fires] {w.name} past {l.name}",
                "{w.name} {score} {l.name}: {brace.last} scores twice",
                "{win}{away_win}{w.name} win {score} at {l.name}[ with {late.by.last} late goal|]",
                "{win}{narrow}{w_opener.by.last} on target as {w.name} edge past {l.name} {score}",
                "{win}{only.by.last} [goal|strike] [gives|earns] {w.name} [narrow|] 1-0 win [over|against] {l.name}",
                "{rout}{w.name} [thrash|rout|overwhelm] {l.name} {score}",
                "{comeback}{w.name} come from behind to beat {l.name} {score}",
                "{win}{late.by.last} strikes late to give {w.name} {score} win over {l.name}",
                "{win}{w.name} [beat|see off|overcome] {l.name} {score} to go {w_place:ord} in {home.league}",
                "{win}{l.name} lose {slump} in a row as {w.name} win {score}",
                "{win}{w.name} make it {run} wins in a row against {l.name}",
                "{goalless}{home.name} and {away.name} play out goalless draw",
                "{goalless}{home.keeper.last} and {away.keeper.last} keep it 0-0 at {home.ground}",
                "{draw}{late.by.last} rescues point in {score} draw at {home.ground}",
                "{draw}{home.name} held to {score} draw by {away.name}",
                "{draw}{home.name} and {away.name} share points after {score} draw",
            ),
            abstracts=(
                "{win}{w.name} are {w_place:ord} in the {home.league} with {w_points} points after beating {l.name} {score}.",
                "{opener.by.name} opened the scoring {opener.when} at {home.ground}[ and {last.by.name} had the last word|]. The match ended {score}.",
                "{win}{only.by.name} scored the only goal, {only.when}, as {w.name} beat {l.name}.",
                "{goalless}No goals at {home.ground}, where {saves} saves by {home.keeper.name} kept {away.name} out.",
                "{win}{l.coach.name} rues [missed chances|a slow start] as {l.name} lose {score} to {w.name}.",
                "{draw}The point leaves {home.name} {w_place:ord} and {away.name} {l_place:ord} in the {home.league}.",
                "{win}A crowd of {crowd} saw {w.name} [win|take all three points] at {home.ground}, {score}.",
            ),
            leads=(
                "{hat_trick.name} scored a hat-trick as {w.name} beat {l.name} {score} {corner} {on}.",
                "{brace.name} scored twice {on} as {w.name} won {score} against {l.name} in the {home.league}.",
                "{comeback}{w.name} went behind to a goal by {opener.by.name} {opener.when} but recovered to beat {l.name} {score} at {home.ground} {on}.",
                "{win}{late.by.name} scored {late.after} {on} to give {w.name} a {score} win over {l.name}.",
                "{rout}{w.name} took {l.name} apart {on}, winning {score} at {home.ground} {corner}.",
                "{win}A goal by {only.by.name} {only.when} was enough for {w.name} to beat {l.name} at {home.ground} {on}.",
                "{win}{w.name} beat {l.name} {score} at {home.ground} {on}, a result that [puts|leaves] them {w_place:ord} in the {home.league}.",
                "{goalless}{home.name} and {away.name} drew 0-0 {on}, {corner}, in a match that had {shots} shots and no goal.",
                "{draw}{leveller.by.name} equalised {leveller.when} {on} as {home.name} and {away.name} drew {score} at {home.ground}.",
                "{goalless}There were {saves} saves, {shots} shots and not one goal at {home.ground} {on}, where {home.name} and {away.name} drew.",
            ),
            then=(
                say("{comeback}{opener.by.name} [had put|put] {opener_side} ahead {opener.when}[, turning sharply on the edge of the area|, after a short corner|, from a cross by the left back|]; {second.by.name} scored next, {second.when}.",
                    "{opener.by.name} opened the scoring {opener.when}, [with a low shot from the edge of the area|from a corner that nobody cleared|after a quick exchange on the right|with a header from eight metres|on the rebound after a save|with the outside of the boot].",
                    "It was {opener.by.name} who struck first, {opener.after}, [when a long throw was only half cleared|sliding in at the far post|finishing a counter-attack that began in {opener_side}'s own box|from the penalty spot after a handball|with a free kick that clipped the wall].",
                    "The only goal came {only.when}, when {only.by.name} [met a corner at the near post|was left alone at the far post|drove in from the left and shot low|beat two defenders and the goalkeeper].",
                    "{goalless}The nearest thing to a goal came [before|shortly after] half-time, when {away.striker.name} [hit the bar|shot wide from six metres|was denied by the foot of a post].",
                    "{goalless}{home.striker.name} and {away.striker.name} each had one good chance; {home.keeper.name} and {away.keeper.name} were equal to both."),
                say("{win}“[We were patient and we were nasty when we had to be|That is the best hour we have played this season|I asked for courage and got it|It was not pretty, and I don't care],” said {w.coach.name}, the {w.name} coach.",
                    "{win}{w.coach.name}, who coaches {w.name}, [praised|singled out] {w.midfielder.name}. “[{w.midfielder.he:cap} ran the game|{w.midfielder.he:cap} sees things before the rest of us do|I would pay to watch {w.midfielder.him}, and I get paid for it|Everything good began at {w.midfielder.his} feet|{w.midfielder.he:cap} does the work that nobody films],” {w.coach.he} said.",
                    "{draw}“[A point is fair, I think|On another day we win, on another day we lose|I am half pleased],” said {home.coach.name}, the {home.name} coach."),
            ),
            loose=(
                say("The goals: {scorers}.", "Scorers: {scorers}."),
                say("{win}{l.coach.name}, the {l.name} coach, [did not hide|made no secret of] {l.coach.his} anger. “[We gave them two presents and said thank you|You can't defend like that at this level|Every team has bad days, but we have had our share],” {l.coach.he} said.",
                    "{win}“[The table does not lie, but it is early|We had chances to change the story|I take it on me],” said {l.coach.name}, whose {l.name} team are {l_place:ord}.",
                    "{draw}{away.coach.name}, in charge of {away.name}, [saw it differently|was more content]. “[We came here to be difficult and we were|My goalkeeper can go to bed happy],” {away.coach.he} said."),
                say("{l.keeper.name} kept the score down with {saves} saves[, the best of them from {w.winger.name}|].",
                    "{home.name} had {shots} shots[, more than half of them on target|, most of them from a distance|, few of them good|]."),
                say("{win}It was a {run_nth} win in a row for {w.name}[, who have {w_points} points|].",
                    "{win}{slump}{l.name} have now lost {slump} in a row.",
                    "{win}The win takes {w.name} to {w_points} points. {leaders} lead the table.",
                    "{win}{w.name} have {w_points} points and stand {w_place:ord}; {l.name} are {l_place:ord}.",
                    "{draw}{home.name} are {w_place:ord} in the {home.league}, {away.name} {l_place:ord}."),
                say("The second half was [scrappier|slower], with {referee.name}, the referee, showing {cards} yellow cards.",
                    "{home.winger.name} went off with cramp late on[, to warm applause|]; {home.youngster.name} came on.",
                    "{referee.name}, the referee, waved away [a late penalty appeal|two shouts for handball], to the fury of the home bench."),
                say("The crowd was given as {crowd}.", "A crowd of {crowd} watched."),
            ),
            weight=0.5,
            covered=0.45,
        ),
        Stage(
            titles=(
                "{win}{l.coach.last} [demands|wants] reaction from {l.name} after {score} defeat by {w.name}",
                "{win}{w.coach.last} keeps feet on ground as {w.name} celebrate win over {l.name}",
                "{win}What {w.name} got right against {l.name}: three things we learned",
                "{draw}{home.coach.last} “half pleased” as {home.name} count cost of {away.name} draw",
                "{win}{l.coach.last} admits {l.name} were “second best” to {w.name}",
            ),
            abstracts=(
                "{win}A day after the {score} result at {home.ground}, {l.coach.name} spoke to {l.coach.his} players for forty minutes.",
                "{w.coach.name} asks for calm; {l.coach.name} asks for more. The morning after {score} at {home.ground}.",
                "{win}{w.midfielder.name} and a brave back line: why {w.name} beat {l.name}.",
                "{draw}The {score} draw left {home.name} {w_place:ord} in the {home.league}.",
            ),
            leads=(
                "{win}{l.coach.name} kept the {l.name} squad behind closed doors for forty minutes {on}, the morning after a {score} defeat by {w.name}.",
                "{win}{w.name} were back on the training pitch {on} with little sign of a celebration, a day after beating {l.name} {score}.",
                "{draw}{home.name} counted the cost {on} of a {score} draw with {away.name} that leaves them {w_place:ord} in the {home.league}.",
            ),
            then=(
                say("{win}“[I have told them what I think and they have told me|No shouting. Video is worse than shouting|The next one is the only answer],” said {l.coach.name}, the {l.name} coach.",
                    "{win}“[Nobody gets a medal in a month like this|I have seen good results before|We enjoy it until lunch],” said {w.coach.name}, the {w.name} coach.",
                    "{draw}“[We dropped two points and found a spine|I would rather be annoyed than comfortable],” said {home.coach.name}, the {home.name} coach."),
            ),
            loose=(
                say("{w.defender.name}, who felt {w.defender.his} {doubt_part} late in the match, was to have a scan.",
                    "{w.forward.name} [trained alone|sat out the session] with a sore {doubt_part}.",
                    "There was no news of {l.winger.name}, who [had left the ground with ice on {l.winger.his} {doubt_part}|is being watched by the doctors].",
                    "Both squads came through without injuries[, a rare thing this season|].",),
                say("The match was played in front of {crowd}, {corner}.", "{opener.by.name} had opened the scoring {opener.when}."),
                say("{w.captain.name}, the {w.name} captain, said the mood was [calm|good]. “[There is a table in the dressing room and nobody looks at it|We train the same after a win, which is annoying],” {w.captain.he} said."),
                say("{l.captain.name}, the {l.name} captain, said the supporters deserved [better passing|a louder reply] next time."),
                say("{leaders} still lead the {home.league}.", "{w.name} are {w_place:ord}, {l.name} {l_place:ord}."),
                say("{w.youngster.name}, still a teenager, [may|could] start the next match."),
            ),
            weight=0.28,
            chance=0.5,
        ),
    ),
    share=2.2,
    rhythm=EVENING,
)  # fmt: skip

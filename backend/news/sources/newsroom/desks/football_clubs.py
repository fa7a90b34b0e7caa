# ruff: noqa: E501 (prose reads better unbroken)
"""How the football desk follows clubs between matches: transfers, coaches, injuries, supporters, national teams."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.league import Club, seasons
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE, ROUND
from backend.news.sources.newsroom.world import Country, Money


def _clubs(scene: Scene) -> tuple[Club, ...]:
    matches = scene.world.kept("football seasons", lambda: seasons(scene.world, scene.world.now))
    return tuple({club.name: club for match in matches for club in (match.home, match.away)}.values())


@dataclass(frozen=True)
class Transfer:
    seller: Club
    buyer: Club
    player: Person
    position: str
    agent: Person
    director: Person
    age: int
    goals: int
    bid: Money
    fee: Money
    weekly: Money
    years: int
    signed: bool
    hitch: str
    quality: str


def _transfer(scene: Scene) -> Transfer:
    clubs = _clubs(scene)
    seller = scene.fresh("football seller", clubs)
    buyer = scene.pick([club for club in clubs if club is not seller])
    position, player = scene.pick((("striker", seller.striker), ("winger", seller.winger), ("midfielder", seller.midfielder),
                                   ("forward", seller.forward), ("defender", seller.defender)))  # fmt: skip
    bid = scene.money(4e6, 42e6, buyer.country.currency)
    return Transfer(
        seller, buyer, player, position, scene.person(None, "an agent"), scene.person(buyer.country, "the sporting director"), scene.between(19, 30),
        scene.between(4, 13), bid, bid.times(scene.rng.uniform(1.15, 1.5)), scene.money(4e4, 1.8e5, buyer.country.currency),
        scene.between(3, 5), scene.chance(0.7),
        scene.pick(("image rights", "a sell-on clause", "the agent's share", "the length of the contract", "a knee examined twice")),
        scene.pick(("a first touch that slows the game down", "the engine to run for a hundred minutes", "a left foot that opens doors",
                    "pace that frightens full backs", "a habit of arriving in the box at the right second", "more assists than anyone noticed")),
    )  # fmt: skip


TRANSFER = Beat(
    "transfers",
    _transfer,
    (
        Stage(
            titles=(
                "{buyer.name} [want|are keen on|target] {seller.name} {position} {player.last}",
                "{seller.name} brace for {buyer.name} bid for {player.last}",
                "Transfer news: {buyer.name} [scout|watch] {player.last} for third time",
                "{player.last} on {buyer.name} list as {seller.name} set price",
            ),
            abstracts=(
                "{buyer.name} have asked about {player.name}, the {age}-year-old {position} who has {goals} goals this season.",
                "{seller.name} say {player.name} is not for sale. {buyer.name} may test that.",
                "The {position} {player.name} has {quality}, and {buyer.name} have noticed.",
            ),
            leads=(
                "{buyer.name} have made {player.name} their first choice to strengthen the side and have [asked {seller.name} for a price|sounded out {seller.name}], people close to both clubs said {on}.",
                "{player.name}, the {seller.name} {position}, is wanted by {buyer.name}, who sent a scout for the third time this month.",
                "A telephone call from {buyer.name} to {seller.name} {on} concerned one man: {player.name}, a {position} of {age} with {quality}.",
            ),
            then=(
                say("{player.last} has {goals} goals this season[ and a contract until the summer after next|], and {quality}.",
                    "At {age}, {player.last} has {goals} goals this season and {quality}."),
                say("“[He is our player and I like him here|I can't stop other clubs from having eyes|Every player has a price, but we are not a shop],” said {seller.coach.name}, the {seller.name} coach."),
            ),
            loose=(
                say("{director.name}, {buyer.name:s} sporting director, [declined to comment|said only that “good players are discussed everywhere”]."),
                say("A first offer of about {bid} is [expected|being prepared].", "{seller.name} are thought to want more than {bid}."),
                say("{agent.name}, the player's agent, was [seen in the stands|in town] last week. “[My telephone works|I watch football for pleasure],” {agent.he} said."),
                say("{buyer.coach.name}, who coaches {buyer.name}, has said in public that {buyer.coach.he} wants [a {position}|another {position}] “[before the nights get shorter|as soon as possible]”."),
                say("{player.last} came through [the youth side|a village club] and [made his debut at eighteen|was once released for being too small]."),
            ),
            weight=0.35,
            covered=0.2,
        ),
        Stage(
            titles=(
                "{seller.name} reject {bid} bid for {player.last}",
                "{bid} not enough: {seller.name} turn down {buyer.name} over {player.last}",
                "{buyer.name} [to return|will be back] with new offer for {player.last} after {bid} bid fails",
            ),
            abstracts=(
                "{buyer.name} offered {bid} for {player.name}. {seller.name} said no within the hour.",
                "{seller.name} want closer to {fee} for {player.name}, a {position} of {age}.",
            ),
            leads=(
                "{seller.name} turned down an offer of {bid} from {buyer.name} for {player.name} {on}, [calling it too low|and named a figure nearer {fee}].",
                "{buyer.name} had a bid of {bid} for {player.name} rejected {on}, but are expected to try again.",
            ),
            then=(
                say("“[We were polite and we were brief|It was an opening number and we closed it|He stays unless somebody makes us gasp],” said {seller.coach.name}, the coach of {seller.name}."),
            ),
            loose=(
                say("{player.last}, a {position} with {goals} goals this season, trained as usual[ and signed autographs for twenty minutes|]."),
                say("Interest from {buyer.name} became known {t0:on}.", "It was {t0:on} that {buyer.name} first asked for a price."),
                say("{agent.name}, who represents {player.last}, said the player was “[flattered and professional|calm, which is more than I am]”."),
                say("{director.name}, who runs recruitment at {buyer.name}, said “[no is the start of most conversations|we know our limit]”."),
                say("The fee {seller.name} have in mind, about {fee}, would be [among the highest|one of the three highest] they have received."),
            ),
            after=(1, 3),
            weight=0.35,
            chance=0.85,
        ),
        Stage(
            titles=(
                "{buyer.name} sign {player.last} from {seller.name} for {fee}",
                "{player.last} completes {fee} move to {buyer.name}",
                "{fee} {position} {player.last} [joins|signs for] {buyer.name}",
            ),
            abstracts=(
                "{player.name} signs for {years} years. The fee is {fee}, up from a first offer of {bid}.",
                "The {position} passed a medical and takes the number {goals} shirt.",
                "{seller.name} lose a player with {goals} goals this season; {buyer.name} gain one with {quality}.",
            ),
            leads=(
                "{buyer.name} completed the signing of {player.name} from {seller.name} {on} for {fee}, ending a chase that began with an offer of {bid}.",
                "{player.name} is a {buyer.name} player. The {position}, {age}, signed a contract for {years} years {on} after the clubs agreed on {fee}.",
            ),
            then=(
                say("“[I had three days of not sleeping and now I want to play|They wanted me when I had a bad month, I don't forget that|My mother has already changed her scarf],” {player.last} said.",),
                say("{buyer.coach.name}, the {buyer.name} coach, said {buyer.coach.he} was getting “[a player with {quality}|somebody who makes others better]”."),
            ),
            loose=(
                say("He will earn about {weekly} a week.", "People close to the deal put his wage at about {weekly} a week."),
                say("{seller.name} had rejected {bid} {t1:on}.", "A first bid of {bid} had been turned down {t1:on}."),
                say("“[We said he would go at our price or stay|I am sad and solvent],” said {seller.coach.name}, who must now replace {goals} goals."),
                say("Talks had snagged on {hitch} [until late|before breakfast], according to {agent.name}, the player's agent."),
                say("He may make his debut [at the weekend|in the next match], though {director.name} [asked for patience|said there was no hurry]."),
            ),
            after=(1, 3),
            weight=0.55,
            covered=0.4,
            when=lambda f: f.signed,
        ),
        Stage(
            titles=(
                "{player.last} move to {buyer.name} [collapses|falls through] over {hitch}",
                "{seller.name} keep {player.last} as {buyer.name} deal [breaks down|fails]",
            ),
            abstracts=("The clubs had agreed on {fee}, but talks ended over {hitch}.", "{player.name} stays at {seller.name} after all."),
            leads=(
                "{player.name:s} move from {seller.name} to {buyer.name} fell through {on} after talks broke down over {hitch}.",
                "{player.name} will stay with {seller.name}. The {fee} deal that would have taken the {position} to {buyer.name} failed {on} because of {hitch}.",
            ),
            then=(say("“[I unpacked the same bag twice|Football is like that, I have training tomorrow],” {player.last} said. “[I have a contract and I like the people|Ask me again in the summer].”",),),
            loose=(
                say("{director.name}, the {buyer.name} sporting director, said the club “[would not be hurried into a mistake|had other names]”."),
                say("{seller.coach.name}, the coach of {seller.name}, [could not hide a smile|was relieved]. “[Best signing of the month|I have a {position} again],” {seller.coach.he} said."),
                say("A first offer of {bid} had been rejected {t1:on} before the price rose to {fee}."),
                say("{agent.name}, the agent, blamed [“too many lawyers and one telephone”|nobody, at some length]."),
                say("{player.last}, {age}, has {goals} goals this season."),
            ),
            after=(0, 0),
            weight=0.45,
            covered=0.25,
            when=lambda f: not f.signed,
        ),
    ),
    share=1.1,
    rhythm=ROUND,
)  # fmt: skip


@dataclass(frozen=True)
class Bench:
    club: Club
    coach: Person
    chair: Person
    fan: Person
    caretaker: Person
    heir: Person
    months: int
    wins: int
    games: int
    place: int
    heir_from: str
    idea: str


def _bench(scene: Scene) -> Bench:
    clubs = sorted(_clubs(scene), key=lambda club: club.points / max(club.played, 1))
    club = scene.fresh("football bench", clubs[:14])
    return Bench(
        club, club.coach, scene.person(club.country, "who chairs the club"), scene.person(club.country), scene.person(club.country, "the assistant coach"),
        scene.person(None, she=False), scene.between(7, 31), scene.between(1, 2), scene.between(9, 11), scene.between(12, 16),
        scene.pick(("a spell abroad", "two years in television", "the national under-21 side", "a year off", "two promotions in the lower leagues")),
        scene.pick(("short passes and long runs", "a back three and patience", "pressing from the first whistle", "set pieces", "young players")),
    )  # fmt: skip


BENCH = Beat(
    "coaches",
    _bench,
    (
        Stage(
            titles=("{club.name} chair refuses to back coach {coach.last}", "Pressure grows on {club.name} coach {coach.last} after {wins:count win} in {games}",
                    "{coach.last} [insists|says] he has time at struggling {club.name}", "{club.name} fans turn on coach {coach.last}"),
            abstracts=("{wins:count win} in {games} matches have left {coach.name} short of friends at {club.name}.",
                       "{chair.name}, who chairs {club.name}, says results “have to speak”. {coach.name} says he is not worried."),
            leads=("{coach.name} said {on} that he still expected to be in charge of {club.name} next week, after a run of {wins:count win} in {games} matches.",
                   "The chair of {club.name}, {chair.name}, declined {on} to give {coach.name} a public promise, saying results “have to speak”."),
            then=(say("“[I have been sacked by better people and kept by worse|I look at the work, and the work is good|A coach always packs light],” {coach.last} said."),),
            loose=(say("{fan.name}, a season-ticket holder [for thirty years|since childhood], said the football had become “[slow and then slower|a thing you watch through your fingers]”."),
                   say("{club.captain.name}, the captain, said the players were “[behind him, all of us|the ones who miss the chances]”."),
                   say("{coach.last} took over {months} months ago and [promised|spoke of] {idea}."),
                   say("There were whistles at {club.ground} [after the last home match|long before the end last time]."),
                   say("{chair.last} met other directors {on}. [No statement followed|The meeting lasted four hours].")),
            weight=0.35,
        ),
        Stage(
            titles=("{club.name} sack coach {coach.last} after {months} months", "{coach.last} out at {club.name}; {caretaker.last} [takes charge|steps in]",
                    "{club.name} part company with {coach.last}"),
            abstracts=("{caretaker.name} takes training while {club.name} look for a successor to {coach.name}.",
                       "{wins:count win} in {games} matches cost {coach.name} his job at {club.name}."),
            leads=("{club.name} dismissed {coach.name} {on}, {months} months after he was appointed and with {wins:count win} from {games} matches.",
                   "{coach.name} is no longer the coach of {club.name}. The club announced his departure {on} in a statement of four lines."),
            then=(say("“[We thank him. It was not working|It is the hardest part of my job and it was time],” said {chair.name}, who chairs the club."),),
            loose=(say("{caretaker.name}, until now the assistant, takes over for the time being. “[I have asked the players for one thing: noise|Nothing clever this week],” {caretaker.he} said."),
                   say("{coach.last} had said {t0:on} that he expected to stay.", "As late as {t0:since}, {coach.last} had spoken of next season."),
                   say("He left by the players' gate, shaking hands with the groundsman.", "“I leave a good group and an empty desk,” {coach.last} wrote to supporters."),
                   say("{fan.name}, a season-ticket holder, was [not sorry|sad all the same]. “[Now let us see who gets the blame|He is a decent man with a bad midfield],” {fan.he} said."),
                   say("Names mentioned as successors include {heir.name}, who is available after {heir_from}.")),
            after=(1, 3), weight=0.55, covered=0.4,
        ),
        Stage(
            titles=("{club.name} appoint {heir.last} as coach", "{heir.last} named new {club.name} coach after {coach.last} sacking", "New {club.name} coach {heir.last} promises {idea}"),
            abstracts=("{heir.name} succeeds {coach.name} and promises {idea}.", "{heir.name} returns to football after {heir_from} with a contract to the end of next season."),
            leads=("{club.name} named {heir.name} as their new coach {on}, ending a search that began when {coach.name} was sacked {t1:on}.",
                   "{heir.name} will coach {club.name} until the end of next season, the club said {on}."),
            then=(say("“[I like clubs with a bit of weather in them|I did not come for a rest|Give me ten days and then complain],” {heir.last} said. He promised {idea}."),),
            loose=(say("{heir.last} comes to the job after {heir_from}."), say("{caretaker.name}, in charge since {coach.last} left, goes back to being assistant[, with a handshake and no hard feelings|]."),
                   say("“He was our first call,” said {chair.name}, who chairs the club. “[He asked about the youth side before the salary|He had watched every match].”"),
                   say("{club.captain.name}, the captain, said the squad was “[curious|ready for something new]”."),
                   say("{fan.name}, who has held a season ticket for decades, gave him “[until the first corner|a warm pie and a fair chance]”.")),
            after=(2, 4), weight=0.45, covered=0.3,
        ),
    ),
    share=0.7,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Injury:
    club: Club
    player: Person
    position: str
    part: str
    weeks: int
    doctor: Person
    how: str
    cover: Person


def _injury(scene: Scene) -> Injury:
    club = scene.fresh("football injury", _clubs(scene))
    position, player = scene.pick(
        (("goalkeeper", club.keeper), ("captain", club.captain), ("striker", club.striker), ("winger", club.winger))
    )
    return Injury(club, player, position, scene.pick(("knee ligament", "hamstring", "ankle", "shoulder", "calf", "thigh", "hand")),
                  scene.between(3, 14), scene.person(club.country, "the club doctor"),
                  scene.pick(("in training", "when he landed badly after a header", "in a collision with a team-mate",
                              "while warming up", "on a frozen practice pitch")), club.youngster)  # fmt: skip


INJURY = Beat(
    "injuries",
    _injury,
    (
        Stage(
            titles=("{club.name} {position} {player.last} out for {weeks} weeks with {part} injury", "{part:cap} injury [rules out|sidelines] {club.name} {position} {player.last}",
                    "Injury blow for {club.name} as {player.last} faces {weeks} weeks out", "{player.last} joins {club.name} injury list"),
            abstracts=("{player.name} was hurt {how} and will miss {weeks} weeks, the club says.", "{cover.name}, still a teenager, may take the place of {player.name}.",
                       "A scan confirmed a {part} injury. {club.coach.name} must change his side."),
            leads=("{club.name} will be without {player.name} for about {weeks} weeks after a scan {on} confirmed a {part} injury.",
                   "{player.name}, the {club.name} {position}, was hurt {how} and faces {weeks} weeks of treatment, the club said {on}.",
                   "What {player.name} hoped was a bruise is a {part} injury, and {club.name} will have to manage without their {position} for {weeks} weeks."),
            then=(say("“[It could have been worse and it is bad enough|We do not hurry these things any more|He will be bored, and then he will be strong],” said {doctor.name}, the club doctor."),),
            loose=(say("{club.coach.name}, the coach, said he had “[one fewer problem with selection and one more with everything else|a plan for this, though not a nice one]”.",
                    "“[You can't replace him with one man|We will play with what we have, and what we have is hungry|I am not going to cry in public],” said {club.coach.name}, the coach.",
                    "{club.coach.last} must now [choose between two systems|change a side that had settled]. “[Somebody's bad luck is somebody's first chance|I liked it as it was],” he said."),
                   say("{cover.name}, a teenager [with four substitute appearances|from the youth side], is in line to start. “[I have been ready since I was six|I ironed my shirt twice],” he said.",
                    "His place may go to {cover.name}, [whose father played for the club|who was in the youth team until spring]. “[I'll ask him where he keeps his courage|My phone has not stopped],” the teenager said.",
                    "{cover.name} trained with the first team {on}[, which was noticed|]. “[He has no fear and no left foot|He will make mistakes and we will clap],” one of the coaches said."),
                   say("“[I heard the noise before I felt it|I shall learn to cook],” {player.last} said in a message to supporters.",
                    "{player.last} left the clinic [on crutches|with a thumb in the air|by a side door]. “[I have counted the days and told nobody|Somebody will have to feed my temper],” he said.",
                    "“[My wife has made a list of shelves|It hurts most when the others go out to train|I was flying, so of course it happened now],” said {player.last}.",
                    "It is his [first|second] long absence, and {player.last} [took the news calmly|needed an evening to himself]."),
                   say("[Three|Four|Five] players are now on the treatment table[, and the medical staff are reviewing training loads|].", "The club's physiotherapists have had a [busy|long] month: {weeks} weeks is not even the longest absence on their list.", "The treatment room at {club.name} has [rarely been so full|five beds, and all are taken].", "A specialist is to look at {player.last} once more [before work on the grass begins|next week]."),
                   say("He is expected back in about {weeks} weeks, [in time for the run-in|if the rehabilitation goes well].")),
            weight=0.28, covered=0.12,
        ),
    ),
    share=0.5,
    rhythm=ROUND,
)  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """What supporters or a club argue about: `head` and `news` follow the club's name."""

    head: str
    news: str
    why: str
    quote: str
    reply: str
    detail: str


_CAUSES = (
    Cause("fans plan walkout over ticket prices", "supporters will leave their seats in the 60th minute of the next home match in protest at ticket prices", "The cheapest adult ticket has gone up by a quarter",
          "My lad pays more than I did for my first car", "We have frozen juniors' tickets and will look again at the rest", "A meeting of the supporters' trust backed the walkout by nine votes to one."),
    Cause("win permission for new stand", "were given permission to build a new stand with 6,000 seats", "The old terrace has been shut since engineers found cracks",
          "We will have a roof that does what roofs do", "We live forty metres away and nobody has measured the noise", "Work is to take eighteen months, with matches going on in the meantime."),
    Cause("sold to local timber family", "have been sold to a family that made its money in timber", "The former owners had put the club up for sale in the spring",
          "We are not buying a toy; my grandfather is buried with his scarf", "We will judge them when the wages are paid", "The new owners have promised not to move the club or change its colours."),
    Cause("docked three points over late accounts", "were docked three points by the league for filing their accounts late", "Two deadlines had passed",
          "We have been punished for a slow accountant", "The rule is the same for everyone and it is one page long", "An appeal must be lodged within a week."),
    Cause("bring back wooden rattles, ban drums", "will allow wooden rattles but no drums at home matches", "Neighbours had complained about the noise",
          "It's a compromise that only a committee could love", "You can't sing to a rattle", "The rule holds until the end of the season."),
    Cause("open women's academy", "opened an academy for girls from eleven to sixteen", "More than 400 had applied for 36 places",
          "I was told to go and play netball; these girls will be told to shoot", "It has come twenty years late, but it has come", "The girls will train on the same pitches as the boys, and at the same hours."),
    Cause("accused of ignoring smoke-bomb warnings", "were accused by police of ignoring warnings about smoke bombs", "Two people were treated for breathing trouble after the last derby",
          "We asked for searches at two gates and got one steward", "We passed on everything that we were told", "The league has opened an inquiry and may close part of the ground."),
    Cause("to play in charity shirts without sponsor", "will play three matches without a sponsor's name on their shirts", "A contract with a betting firm ended early",
          "A shirt is allowed to be just a shirt", "It is a fine gesture, and it costs us a full back", "The space will carry the name of a children's hospital."),
    Cause("pitch declared unplayable after flood", "will have to move their next home match after water covered the pitch", "A culvert behind the main stand had burst",
          "There were ducks on the penalty spot", "We sold the food already, what am I to do with nine hundred pies?", "Engineers expect the pitch to be playable within ten days."),
    Cause("reveal loss and plan to sell training ground", "revealed a loss for the third year and plan to sell their training ground", "Wages took up nine-tenths of income",
          "It is land, not an heirloom", "You do not sell the kitchen to pay for dinner", "The buyers, a housing firm, would rent it back for two seasons."),
    Cause("captain launches school breakfast scheme", "will pay for breakfasts at four schools under a scheme begun by their captain", "A survey had found one child in six arriving hungry",
          "I was that child, so it isn't complicated", "They eat, they listen, and they ask about offside", "Players will serve the porridge themselves once a month."),
    Cause("supporters buy share in club", "supporters bought a tenth of the club for the price of a full back", "A minority owner had died and left the shares to his family",
          "We own a tenth of a leaking roof and we are delighted", "They will find out what a boardroom sandwich costs", "The trust gets one seat on the board and a veto over the colours."),
)  # fmt: skip


@dataclass(frozen=True)
class Quarrel:
    club: Club
    cause: Cause
    voice: Person
    other: Person
    members: int


def _quarrel(scene: Scene) -> Quarrel:
    club = scene.fresh("football cause club", _clubs(scene))
    return Quarrel(
        club,
        scene.fresh("football cause", _CAUSES),
        scene.person(club.country),
        scene.person(club.country),
        scene.near(900, 9_000),
    )


QUARREL = Beat(
    "clubs and fans",
    _quarrel,
    (
        Stage(
            titles=("{club.name} {cause.head}", "Football: {club.name} {cause.head}", "{club.league}: {club.name} {cause.head}"),
            abstracts=("{cause.why}. {cause.detail}", "{club.name} {cause.news}.", "“{cause.quote},” says {voice.name}."),
            leads=("{club.name} {cause.news}, it was announced {on}.", "It is official: {club.name} {cause.news}.", "{cause.why}; now comes the consequence. {club.name} {cause.news}."),
            then=(say("“{cause.quote},” said {voice.name}[, who was at the announcement|, who has followed the club for decades|]."), say("{cause.detail}")),
            loose=(say("{cause.why}."), say("Not everybody was [pleased|of that opinion]. “{cause.reply},” said {other.name}.", "“{cause.reply},” said {other.name}, asked for a comment."),
                   say("The supporters' trust, which has {members} members, [meets next week|will discuss it next week]."),
                   say("{club.coach.name}, the coach, would rather talk about football. “[I pick the team, that is all|I leave that to people with ties],” he said."),
                   say("{club.name} play in the {club.league} and have {club.points} points.")),
            weight=0.3, covered=0.25,
        ),
        Stage(
            titles=("{club.name}: reaction after week of argument", "What next for {club.name}? {other.last} and {voice.last} [disagree|differ]"),
            abstracts=("“{cause.reply},” says {other.name}. {cause.detail}",),
            leads=("The argument continued {on}, days after it was announced that {club.name} {cause.news}.",),
            then=(say("“{cause.reply},” said {other.name}."), say("{voice.name} [answered|did not agree]. “{cause.quote}.”")),
            loose=(say("{cause.detail}"), say("{cause.why}."), say("The supporters' trust polled its {members} members. [The result was split|Opinion was divided almost evenly].")),
            after=(2, 5), weight=0.2, chance=0.35,
        ),
    ),
    share=0.5,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Squad:
    c: Country
    coach: Person
    caller: Club
    called: Person
    left_out: Person
    left_club: Club
    foe: Country
    size: int
    caps: int
    reason: str


def _squad(scene: Scene) -> Squad:
    c = scene.country("football squad")
    club, other = scene.sample(_clubs(scene), 2)
    foe = scene.pick([one for one in scene.world.countries if one is not c])
    return Squad(c, scene.person(c, f"the {c.demonym} coach"), club, club.youngster, other.captain, other, foe, scene.between(23, 26), scene.between(31, 90),
                 scene.pick(("form", "a sore back", "age", "a quarrel nobody will describe", "a wish to look at others")))  # fmt: skip


SQUAD = Beat(
    "national teams",
    _squad,
    (
        Stage(
            titles=("{c.name} coach {coach.last} [leaves out|drops] {left_out.last} for {foe.name} match", "{called.last} gets first {c.name} call-up",
                    "{c.demonym} national team: {called.last} in, {left_out.last} out", "{coach.last} names {size}-man squad for {foe.name} qualifier"),
            abstracts=("{called.name} of {caller.name} is in the {c.demonym} squad to play {foe.name}; {left_out.name} is not.", "{coach.name} cites {reason} for leaving out {left_out.name}, who has {caps} caps."),
            leads=("{coach.name}, the coach of {c.name}, left {left_out.name} out of {coach.his} squad of {size} {on} and gave a first call-up to {called.name}.",
                   "A first call-up for {called.name} and no place for {left_out.name}: {coach.name} named {size} players {on} for {c.name:s} qualifier against {foe.name}."),
            then=(say("“[It was a hard telephone call and a short one|Nobody owns a shirt],” {coach.last} said of {left_out.last}, giving {reason} as the reason."),),
            loose=(say("{left_out.last}, who plays for {left_club.name}, has {caps} caps. “[I will be on the sofa, shouting|I respect it and I disagree],” he said."),
                   say("{called.last}, of {caller.name}, heard the news [on the team bus|from his sister]. “[I thought somebody was joking|I had to sit down],” he said."),
                   say("{caller.coach.name}, his club coach at {caller.name}, called it “[early but right|the reward for a good run]”."),
                   say("{foe.name} [won the last meeting|have not lost at home for two years].", "{c.name} need at least a draw to stay second in the group."),
                   say("The squad meets next week[ in {c.capital}|].")),
            weight=0.35, covered=0.2,
        ),
    ),
    share=0.4,
    rhythm=OFFICE,
)  # fmt: skip

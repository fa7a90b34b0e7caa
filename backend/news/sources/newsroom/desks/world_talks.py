# ruff: noqa: E501 (prose reads better unbroken)
"""The world desk on wars that people try to end: talks open, stall, break or succeed, and truces are tested."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.world_cast import head, neighbour
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.world import Country


@dataclass(frozen=True)
class War:
    """A conflict inside one country: who fights, over what, and what the front and the table look like."""

    country: str
    region: str
    movement: str
    fighters: str
    grievance: str
    dispute: str
    front: str
    civilian: str
    wish: str
    breach: str


WARS: tuple[War, ...] = (
    War("Tamira", "the Hamra Desert", "the Hamra Front", "Front fighters", "wells that were fenced off for a phosphate mine", "who will guard the desert wells", "The two lines run along either side of a dry riverbed, close enough to trade cigarettes",
        "a herder with forty camels and two families to water", "I do not need a flag, I need the key to the pump", "a lorry of flour was shot at near the last well"),
    War("Torgan", "the Sary Mountains", "the Sary Highland Council", "highland militias", "a language that schools were told to stop teaching", "how many soldiers may stay in the mountain passes", "Snow has closed the upper posts, and neither side can move before the thaw",
        "a teacher who keeps two sets of textbooks under the stove", "My pupils can count in three languages and have lessons in none", "a mortar shell fell on a bridge that both sides had promised to leave alone"),
    War("Sundara", "the Hill Districts", "the United Hill Congress", "Hill Congress fighters", "land titles given to tea estates over the heads of villages", "what becomes of the estates", "From the ridge one sees tea, then wire, then tea again",
        "a picker who has crossed the line to work every day of the war", "The bushes do not know who won", "an army patrol and a band of fighters met in fog on an estate road"),
    War("Oyala", "the Northern Savannah", "the Savannah Liberation Movement", "the movement's fighters", "grazing routes cut by cotton farms", "the release of eleven hundred prisoners", "The front is a line of burnt trees and, every ten kilometres, a tent with a radio",
        "a grain trader who pays tolls to both armies", "I give to the one, I give to the other, and I have nothing to give to my brother", "cattle were driven through a village under guard and four people were shot"),
    War("Zamburi", "the Rift Highlands", "the Rift People's Army", "People's Army units", "geothermal fields whose income goes to the capital", "the share of the income from steam", "The power station stands between the lines and hums on, because both sides need the light",
        "a nurse at the one clinic that treats both sides", "On my table they all ask for their mothers", "a drone came down in the yard of a maize mill"),
    War("Castara", "the Altiplano", "the Armed Alliance of the Altiplano", "Alliance columns", "lithium brine pumped from under common pastures", "who may own the salt flats", "Across the white plain a car can be seen an hour before it arrives",
        "a salt cutter whose saw has been confiscated twice", "They draw lines on salt, and the first rain will take them", "a convoy of tankers was set alight on the brine road"),
    War("Pelinang", "the Outer Archipelago", "the Islands' Independence League", "League boats", "fishing grounds leased to foreign trawlers", "how far from shore the League may keep its boats", "There is no front, only four hundred islands and a radio frequency on which everybody listens",
        "a ferry captain who has been boarded by both navies in one day", "I raise whatever flag keeps the engine running", "a patrol craft rammed a fishing boat off a reef that both sides claim"),
    War("Belmara", "the Sertao", "the Sertao Defence Committee", "Committee riders", "a dam that flooded nineteen hamlets", "compensation for families who lost their land", "Riders watch the road from the mesas, and the army watches the riders from balloons",
        "a midwife who travels between both sides with a white umbrella", "Children come when they come, and somebody has to be let through", "a water tower was blown up a day after it had been mended"),
    War("Lorvenia", "Podgorje", "the Podgorje Assembly", "Assembly volunteers", "a border drawn through a dozen villages after the last war", "whose police may patrol the twelve villages", "In one village the line passes through a café, and guests pay in two tills",
        "the landlord of a café that is divided by chalk", "The cook is in one republic and the oven in the other", "two police cars met head on in a lane and neither would reverse"),
    War("Haesan", "the Eastern Range", "the Eastern Range Brotherhood", "Brotherhood units", "coal towns that were closed within one winter", "an amnesty for men who took up arms", "Old mine galleries pass under the lines, and everybody knows that and nobody says so",
        "a cook who sells noodles at the checkpoint", "They all pay, they all say thank you, and then they go back up and shoot", "three miners who had come down to vote were held at a checkpoint"),
)  # fmt: skip


@dataclass(frozen=True)
class Talks:
    c: Country
    w: War
    host: Country
    town: City
    venue: str
    years: int
    dead: int
    displaced: int
    envoy: Person
    rebel: Person
    delegate: Person
    analyst: Person
    civilian: Person
    premier: Person
    days: int
    round: int
    monitors: int
    posts: int
    killed: int
    deal: bool
    gesture: str


def _talks(scene: Scene) -> Talks:
    w = scene.fresh("war", WARS, uses=1)
    c = next(c for c in scene.world.countries if c.name == w.country)
    host = neighbour(scene, c)
    return Talks(
        c, w, host, scene.pick(host.cities[1:]), scene.pick(("a lakeside hotel", "a former monastery", "a sanatorium", "the naval academy", "a closed casino", "a winter palace", "an agricultural college", "a conference centre beside the airport")),
        scene.between(3, 17), scene.near(2_400, 61_000), scene.near(70_000, 900_000), scene.person(None, "the chief mediator"), scene.person(c, f"who leads {w.movement}"),
        scene.person(c, "the government's chief negotiator"), scene.person(None), scene.person(c), head(c), scene.between(4, 11), scene.between(2, 6), scene.near(120, 900), scene.between(6, 19), scene.between(3, 14), scene.chance(0.6),
        scene.pick(("exchanged the bodies of forty men", "let an aid convoy through", "freed nine prisoners each", "reopened a telephone line", "allowed a children's hospital to be evacuated")),
    )  # fmt: skip


TALKS = Beat(
    "peace talks",
    _talks,
    (
        Stage(
            titles=("{c.name} and {w.movement} open peace talks in {host.name}", "Peace talks on {w.region} open after {years} years of war", "Enemies at one table: {c.demonym} talks start in {town.name}", "{c.name}'s war: negotiators meet in {town.name}", "Cautious hopes as {c.demonym} ceasefire talks open in {town.name}"),
            abstracts=("Delegations of the {c.demonym} government and {w.movement} meet in {venue} in {town.name}. The hardest question is {w.dispute}.", "The war over {w.region} has killed about {dead} people. {envoy.name}, the mediator, has asked for {days} days.", "In {town.name}, the parties did not shake hands. “{w.wish},” says {civilian.name}, {w.civilian}."),
            leads=("Negotiators for the {c.demonym} government and {w.movement} sat down in {venue} in {town.name} {on} for talks meant to end {years} years of war in {w.region}.", "They came through separate doors and were seated so that nobody had to face anybody. Talks on the war in {w.region} of {c.name} opened in {town.name} {on}, [four months late|after two false starts].", "After {years} years and some {dead} deaths, the war in {w.region} has reached a table. It stands in {venue} in {town.name}, where {c.demonym} officials met envoys of {w.movement} {on}."),
            then=(say("“[I have asked both sides for {days} days without adjectives|Nobody here trusts anybody, which is at least a common position|We agreed on the agenda, and I will not tell you how long that took],” said {envoy.last}. First on the list is {w.dispute}.", "{envoy.last}, [a judge by training|who has mediated in two other wars|who does not give interviews and gave none {on}], has split the agenda into [three baskets|small questions and one large one]. The large one is {w.dispute}."),
                  say("The conflict began over {w.grievance}. {w.movement:cap} says it will talk about that [first|or about nothing]; the government wants a ceasefire before anything else.", "{w.fighters:cap} took up arms {years} years ago over {w.grievance}. About {displaced} people have been driven from their homes.")),
            loose=(say("{w.front}."), say("“{w.wish},” said {civilian.name}, {w.civilian}, [reached by telephone|who followed the opening on the radio].", "In {w.region}, {civilian.name}, {w.civilian}, [did not stop work to listen|has heard of talks before]. “{w.wish},” {civilian.he} said."),
                   say("Before the opening, the two sides {gesture}, [which diplomats called a good sign|the first such step in a year]."), say("{delegate.last} told reporters that the state would “[be generous about everything except its borders|talk to anyone who puts a rifle down first]”. {rebel.name}, {rebel.role}, stayed away and sent [a deputy|two lawyers and a poet].", "For {w.movement}, {rebel.name}, {rebel.role}, said in a recorded message that {rebel.his} people were “[tired, and not that tired|ready for peace and ready for the other thing]”."),
                   say("{analyst.name}, who [has written a history of the conflict|studies the region at a university in {host.name}], [gave the talks one chance in three|was sceptical]. “[They have agreed to meet, which costs nothing|Both sides need a pause; whether they need a peace is another matter],” {analyst.he} said.", "{host.name}, as host, pays for the rooms and [checks every telephone at the gate|keeps the press in a gymnasium across the road].")),
            weight=0.55, covered=0.35,
        ),
        Stage(
            titles=("Peace talks on {c.name} stall over {w.dispute}", "{c.demonym} peace talks: mediator shuttles between two floors", "{w.movement:cap} threatens to leave {town.name} talks", "Deadlock in {town.name} over {w.dispute}", "Day {round:fig}: {c.demonym} negotiators stop speaking to each other"),
            abstracts=("Delegations have withdrawn to their rooms. {envoy.name} carries papers between them.", "The quarrel is about {w.dispute}. {delegate.name}, for the government, speaks of a red line.", "A draft was on the table, and then it was not. Negotiators in {town.name} accuse each other."),
            leads=("The talks on the war in {w.region} ran aground {on} on the question of {w.dispute}.", "For most of {today}, {c.name}'s enemies negotiated by staircase: the government on the second floor, {w.movement} on the third, and {envoy.last} in between.", "A delegate of {w.movement} packed his suitcase in view of the cameras {on}, and unpacked it an hour later. The peace talks in {town.name} are stuck on {w.dispute}."),
            then=(say("“[We are stuck, which is a stage, not an end|I have had worse days, and some of them ended in a signature],” {envoy.last} said.", "{delegate.last} accused the other side of “[moving the furniture every night|selling the same concession twice]”. {w.movement:cap} [answered in kind|said the government had come without a mandate].", "“[They want us to sign first and read later|On this we can't give, because there would be nothing left to give],” said an envoy of {w.movement}. {delegate.last} called that “[theatre|a pity]”."),),
            loose=(say("{w.front}."), say("The talks opened {t0:on} in {venue}. They are to last {days} days, [unless somebody leaves|and can be extended].", "Both parties had come to {town.name} {t0:on} at the invitation of {host.name}."),
                   say("At the root lies a quarrel over {w.grievance}.", "{analyst.name}, a historian of the war, said the dispute over {w.dispute} was “[a stand-in for all the others|real, and also a way to buy time]”. It all started with {w.grievance}."),
                   say("“{w.wish},” said {civilian.name}, {w.civilian}.", "{civilian.name}, {w.civilian}, said news of the deadlock had [emptied the market|sent people out to buy flour]. “{w.wish}.”"),
                   say("{premier.last}, [under pressure from generals|who has an election to think of], said the army was “[patient, not absent|ready for every outcome]”.", "In {c.capital}, relatives of soldiers [stood in front of the defence ministry with photographs|asked the government not to walk away]."), say("Fighting has gone on at a low level; a monitoring group counted {killed:count death} this week.")),
            after=(1, 2.4), weight=0.38, covered=0.15,
        ),
        Stage(
            titles=("{c.name} and {w.movement} agree ceasefire", "{town.name} deal: guns to fall silent in {w.region} within {days} days", "Peace deal for {c.name} signed in {town.name}", "Deal in {town.name} ends {years} years of war in {w.region}", "{envoy.last} brokers {c.demonym} truce at the last minute"),
            abstracts=("The parties agree a ceasefire, {monitors} monitors and a formula for {w.dispute}.", "After a night of talks, {w.movement} and the government in {c.capital} sign. Many questions are left for later.", "The truce covers all of {w.region} and takes effect within {days} days. “{w.wish},” says {civilian.name}."),
            leads=("The {c.demonym} government and {w.movement} agreed {on} to stop fighting in {w.region}, under a deal that sends in {monitors} unarmed monitors.", "There was one pen and it did not work. When a second was found, {on}, {delegate.last} and an envoy of {w.movement} signed a ceasefire that is meant to end {years} years of war in {c.name}.", "{envoy.last} came down the stairs of {venue} in {town.name} {on}, held up four sheets of paper and said: “[It is done|That is peace, or its first page].”"),
            then=(say("Guns are to fall silent within {days} days. {w.fighters:cap} will withdraw to {posts} assembly points, and a joint commission will settle {w.dispute}.", "The text runs to four pages. It orders a ceasefire within {days} days, {posts} assembly points for {w.fighters} and a commission on {w.dispute}."),
                  say("“[Nobody won, and that is why it may hold|I have signed things in my life that I liked better and that mattered less],” {delegate.last} said. {rebel.name}, {rebel.role}, spoke of “[a door, not a house|a beginning that our dead have paid for]”.", "{premier.last} called the agreement “[the best news in {years} years|hard, fair and late]”. {rebel.name}, {rebel.role}, told {rebel.his} people to “[keep your word before you ask for theirs|go home and plant something]”.")),
            loose=(say("“{w.wish},” said {civilian.name}, {w.civilian}.", "{civilian.name}, {w.civilian}, [wept|shrugged]. “{w.wish},” {civilian.he} said."), say("About {dead} people have died and {displaced} have fled since the war began over {w.grievance}."), say("The breakthrough came when {envoy.last} [locked the dining room|took the two delegation heads for a walk without advisers|proposed to leave one line of the text blank].", "What broke the deadlock, people in the room say, was [a telephone call from {host.capital}|exhaustion|a map that a junior officer had drawn]."),
                   say("{analyst.name}, who [follows the conflict|has counted earlier truces there], warned that the question of {w.dispute} had been “[postponed rather than solved|wrapped in a commission]”.", "Money for rebuilding is [to be raised at a conference in {host.capital}|not mentioned in the text]."), say("The monitors come from {host.name} and five other countries; the first are due within a week.")),
            after=(1.5, 3), weight=0.78, covered=0.6, when=lambda f: f.deal,
        ),
        Stage(
            titles=("Peace talks on {c.name} collapse", "{w.movement:cap} walks out of {town.name} peace talks", "No ceasefire for {w.region} as talks in {town.name} fail", "{c.demonym} peace talks end without a deal or a date"),
            abstracts=("After {days} days in {town.name}, delegations leave without an agreement on {w.dispute}.", "{envoy.name} says both sides came close. Shelling is reported from {w.region}.", "The parties blame each other. “{w.wish},” says {civilian.name}, {w.civilian}."),
            leads=("The talks that were meant to end the war in {w.region} broke down {on} over {w.dispute}.", "{w.movement:cap} left the peace talks in {town.name} {on}. The cars were gone before {envoy.last} had come down for breakfast.", "No statement, no date, no photograph: the {c.demonym} peace talks in {town.name} ended {on} as they had begun, without a handshake."),
            then=(say("“[We were one sentence apart|I will not call it a failure, because I will need them both again],” said {envoy.last}. The sentence, officials say, concerned {w.dispute}.", "{delegate.last} said the other side had “[never meant to sign|asked for the moon and a receipt]”. {rebel.name}, {rebel.role}, replied that {c.capital} had “[sent clerks to end a war|offered us our own land on lease]”."),
                  say("Within hours, shelling was heard in {w.region}, where a monitoring group reported {killed:count death}.", "{w.front}. {on:cap}, there was firing for the first time in a week.")),
            loose=(say("“{w.wish},” said {civilian.name}, {w.civilian}.", "{civilian.name}, {w.civilian}, had hoped for a quiet month. “{w.wish},” {civilian.he} said."), say("{premier.last} said the government had “[left the lamp on|done what could be done]”. The opposition blamed {premier.him} for [sending a junior team|talking at all].", "In {c.capital}, {c.rival.name}, the opposition leader, called for [a new mediator|an emergency session of the {c.house}]."), say("The war, which began over {w.grievance}, has cost about {dead} lives and driven {displaced} people from home."),
                   say("{host.name} said its invitation stood.", "{analyst.name}, who studies the conflict, expects [a hard month and a new round after it|both sides to try their luck on the ground first]."), say("In the hall of {venue}, staff [were taking down the flags|found a chess game, unfinished, in a corridor used by both sides].")),
            after=(0, 0), weight=0.6, covered=0.4, when=lambda f: not f.deal,
        ),
        Stage(
            titles=("First ceasefire breach reported in {w.region}", "{c.demonym} truce holds after incident kills {killed:fig}", "Monitors arrive in {w.region} as ceasefire is tested", "Ceasefire in {c.name}: one shooting, {monitors} monitors and many rumours"),
            abstracts=("Both sides promise to investigate after {w.breach}.", "Monitors count {killed:fig} dead. {envoy.name} asks the parties to use the telephone line set up for such cases.", "The truce of {t2:day} meets its first trial: {w.breach}."),
            leads=("The ceasefire in {w.region} met its first serious test {on}, when {w.breach}.", "It took the telephone line between the two commands eleven rings to be answered. By then, {on}, {w.breach}, and the {c.demonym} truce had its first dead.", "{w.movement:cap} and the {c.demonym} army blamed each other {on} after {w.breach}. Both said they would stick to the ceasefire."),
            then=(say("Monitors put the number of dead at {killed:fig}. “[A truce is not the absence of incidents, it is what you do the morning after|Both sides called us before they called the newspapers; I take that as progress],” said {envoy.last}."), ),
            loose=(say("The agreement signed {t2:on} in {town.name} provides for {monitors} monitors and {posts} assembly points."), say("{w.front}[, though the guns have mostly been silent since {t2:day}|]."), say("“{w.wish},” said {civilian.name}, {w.civilian}."), say("{rebel.name}, {rebel.role}, [suspended two commanders|ordered an inquiry of {rebel.his} own]. {delegate.last} [welcomed that|said it was a start].", "{premier.last} said the army had orders to hold fire. “[We will bury our dead and keep our word|One bad patrol does not make a war],” {premier.he} said."),
                   say("Roads have begun to open. [A bus ran to the regional capital for the first time in years|Traders report the first fresh fish in months|Two schools have moved back into their buildings].", "Still unsettled is {w.dispute}; the commission has yet to [meet|agree on a chair].")),
            after=(1.5, 4), weight=0.45, covered=0.2, when=lambda f: f.deal,
        ),
    ),
    share=0.9,
)  # fmt: skip

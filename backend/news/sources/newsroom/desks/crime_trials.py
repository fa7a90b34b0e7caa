# ruff: noqa: E501 (prose reads better unbroken)
"""The court desk on long trials: opening, evidence, verdict, sentence."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country


@dataclass(frozen=True)
class Case:
    """A case: the accused's trade, the charge, what each side says, the evidence and the doubt."""

    short: str
    job: str
    charge: str
    story: str
    proof: str
    witness: str
    said: str
    crown: str
    defence: str
    doubt: str
    victim: str
    years: tuple[int, int]


CASES: tuple[Case, ...] = (
    Case("lighthouse murder", "a boat builder", "murder", "{v.name}, {case.victim}, was found at the foot of a disused lighthouse with the key still in one hand", "varnish under the dead {v.man}'s nails, of a kind mixed in one yard only", "a ferry clerk", "I sold two tickets out and one ticket back", "The tide table was on the kitchen wall, with a ring around the date", "A person can buy varnish without buying guilt", "whether the gallery rail had rusted through by itself", "a retired pilot", (14, 24)),
    Case("poisoned jam case", "a caterer", "attempted murder", "four guests at a christening fell ill after eating a jar of damson jam meant for {v.name}, {case.victim}", "a saucepan in which the laboratory found foxglove", "a neighbour", "I was given a jar too, and I was told to keep it until Sunday", "Three jars were labelled in ink and one in pencil", "A hedge is full of things that look like other things", "whether the leaves were picked in error", "the head of the family firm", (7, 12)),
    Case("flat fire trial", "a landlord", "manslaughter", "six tenants died in a fire in a house whose back stairs had been bricked up to make a bathroom", "a builder's invoice for one wall, paid in cash and dated", "a survivor", "We knew the stairs were there, because we could hear them", "A fire does not kill six people; a wall did", "{d.he:cap} signed many invoices, and the council signed off the house", "whether an inspector had seen the wall and passed it", "one of the dead", (5, 11)),
    Case("racehorse ransom case", "a vet", "kidnapping", "{v.name}, {case.victim}, was held for nine days in a horsebox until a sum in used notes was thrown from a bridge", "a receipt for oats, found in a glove", "a toll collector", "It's not often that you hear a horsebox sneeze", "Nine days is a long time to improvise", "My client knows horses, and you have shown the court a horsebox", "who was driving on the second day", "the heir of a racing stable", (9, 15)),
    Case("tower crane trial", "a site manager", "causing death by negligence", "a crane fell across a street in the morning traffic and killed {v.name}, {case.victim}, and two others", "a message that says: leave the bolts until Friday", "a rigger who had resigned the week before", "I told {d.him} it hums, and {d.he} told me to wear earplugs", "There were forty-four bolts and there were thirty-nine bolts", "A site has eleven firms on it, and blame runs downhill", "whether the wind was stronger than any crane must stand", "a cycle courier", (2, 5)),
    Case("violin robbery trial", "a hotel porter", "robbery", "a violin worth several millions was taken from {v.name}, {case.victim}, at a service entrance by someone with a stun gun", "rosin on the lining of a porter's coat", "a pawnbroker", "It was in a case for a fishing rod, and it was not a rod", "The defendant asked three times that day which lift {v.he} would take", "If carrying luggage is a crime, the hotel is a gang", "a second coat, of the same size, which vanished", "a soloist on tour", (6, 10)),
    Case("care home murder", "a nurse", "murder", "three residents of a care home died within a month of insulin that had not been prescribed to them, among them {v.name}, {case.victim}", "a rota that puts one nurse on each of the three nights", "a night cleaner", "{d.he:cap} said {v.he} would not need breakfast, and it was two o'clock", "Three deaths, three nights, one name", "The cupboard had a lock and the lock had nine keys", "a faulty pump that had been recalled elsewhere", "a former headteacher", (18, 28)),
    Case("hunting death trial", "a forester", "murder", "{v.name}, {case.victim}, was shot at three hundred metres on the first morning of the season", "a message deleted an hour before sunrise", "a beater", "There was one boar, and it was on the other side", "A forester does not mistake a landlord for a boar", "It was fog, and fog is not a motive", "an expert's view that the bullet had struck a branch", "the owner of the estate", (12, 20)),
    Case("forged wills trial", "a notary", "forgery and theft", "eleven elderly clients left their houses to the same charity, which had one member", "a typewriter whose letter e leans", "the niece of one of the dead", "My aunt never wrote the word moreover in her life", "The clients died of old age. The wills did not", "A lonely person may like a notary", "two of the wills, whose witnesses stand by their signatures", "one of the eleven", (4, 9)),
    Case("motorway sniper trial", "a locksmith", "attempted murder", "shots were fired at lorries from a motorway bridge on six nights, and {v.name}, {case.victim}, lost an eye", "a ladder whose feet fit marks in the gravel", "a lorry driver", "I thought it was a stone, and then I couldn't see the road", "Six nights without sleep, and each next day a day off work", "A ladder fits many marks", "a witness who saw a taller figure", "a driver of 58", (11, 17)),
    Case("ferry sinking trial", "a ship's captain", "manslaughter", "a ferry turned over in calm water with three hundred people aboard, and nineteen drowned, {v.name}, {case.victim}, among them", "a bow door logged as closed by a man who was ashore that day", "a cook", "The plates went first, and {d.he} was still on the telephone", "{d.he:cap} left the bridge and then the ship", "The door was the yard's, the rules were the owner's, and the dock gets the captain", "whether the ballast pump had been disconnected by the owner", "a schoolteacher with her class", (6, 13)),
    Case("allotment murder", "a retired clerk", "murder", "{v.name}, {case.victim}, was found under a bed of leeks eleven weeks after a quarrel about a fence", "soil from two depths on one spade", "the treasurer of the allotment society", "We all had words with {v.him}, but we used words", "No one plants leeks in February unless something is in the way", "Half the society had a spade and the other half a grudge", "a second set of footprints that were never matched", "who chaired the society", (13, 21)),
    Case("stadium bribes trial", "a former mayor", "bribery", "the contract for a stadium went to the dearest of five bidders, whose director had bought a chalet that he never saw from the defendant's brother", "a napkin with four sums on it", "a planning clerk", "I was told to lose the cheaper file, so I lost it in my own drawer", "It is the only chalet in the country without a stove and with nine hundred thousand paid for it", "Brothers sell houses; councils vote", "whether the napkin was written before or after the vote", "the town", (3, 7)),
    Case("silent caller trial", "a radio engineer", "stalking", "{v.name}, {case.victim}, received four thousand calls in a year and then found the furniture in a locked flat moved by a hand's breadth", "a spare key cast from a photograph", "a locksmith", "{d.he:cap} asked for one that would not click", "Not a word was said on the line, and every word was a threat", "The number belongs to a firm with sixty desks", "calls made while the defendant was on a plane", "a newsreader", (3, 6)),
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    c: Country
    case: Case
    city: City
    d: Person
    v: Person
    judge: Person
    lawyer: Person
    prosecutor: Person
    witness: Person
    expert: Person
    kin: Person | None
    age: int
    years: int
    asked: int
    days: int
    hours: int
    pages: int
    witnesses: int
    guilty: bool


def _trial(scene: Scene) -> Trial:
    case = scene.fresh("case", CASES, uses=2)
    c = scene.country(f"case {case.short}")
    years, age = scene.between(*case.years), scene.between(34, 66)
    d = scene.person(c, f"{case.job} aged {age}")
    return Trial(
        c, case, scene.pick(c.cities), d, scene.person(c), scene.person(c, "the presiding judge"), scene.person(c, "the defence lawyer"), scene.person(c, "the prosecutor"),
        scene.person(c), scene.person(c, scene.pick(("a forensic scientist", "an expert called by the court", "an expert for the state laboratory", "a specialist in traces"))), None if case.victim == "the town" else scene.person(c), age, years, years + scene.between(1, 4), scene.between(14, 41), scene.between(6, 31), scene.near(1_200, 19_000), scene.between(24, 112), scene.chance(0.72),
    )  # fmt: skip


TRIAL = Beat(
    "trials",
    _trial,
    (
        Stage(
            titles=("{case.short:cap}: {d.last} goes on trial in {city.name}", "Trial opens over {case.short} in {c.name}", "{d.last} denies {case.charge} as {case.short} reaches court", "Court in {city.name} hears first day of {case.short}", "{case.short:cap}: prosecutors set out {case.charge} case against {d.last}"),
            abstracts=("{d.name} pleads not guilty to {case.charge}. The court has set aside {days} days.", "“{case.crown},” the prosecutor says. The defence replies: “{case.defence}.”", "The trial in {city.name} turns on {case.proof}."),
            leads=("{d.last} went on trial in {city.name} {on}, accused of {case.charge}.", "Every seat was taken when the {case.short} opened in {city.name} {on}. {d.last}, who is charged with {case.charge}, pleaded not guilty [in a firm voice|and asked for a glass of water|in two words].", "One of {c.name}'s most closely watched trials began {on} with a reading of the charge: {case.charge}. {d.last}, in a [grey suit|borrowed jacket], denied it."),
            then=(say("According to the indictment, {case.story}.", "The facts are hardly in dispute: {case.story}. Who is to blame is the question for the court."),
                  say("“{case.crown},” said {prosecutor.last}, opening for the state. The case rests, {prosecutor.he} said, on {case.proof}.", "{prosecutor.last} spoke for [two hours|most of the morning] without [a note|raising {prosecutor.his} voice]. “{case.crown}.” At the centre of the file lies {case.proof}."),
                  say("{lawyer.last} [asked the court to wait before it made up its mind|was brief]. “{case.defence}.”", "“{case.defence},” replied {lawyer.last}. The defence will ask about {case.doubt}.")),
            loose=(say("{judge.last} has set aside {days} days and will hear {witnesses} witnesses[; the file runs to {pages} pages|].", "The file has {pages} pages, and {witnesses} witnesses have been called. {judge.last} told the public gallery that it was “[a court and not a theatre|free to leave and not free to sigh]”."), say("{kin.name}, [who has taken leave from work to attend|who sat in the first row with a photograph], [looked straight ahead throughout|left before the details were read out]. “[I want to know and I do not want to hear|Somebody should be there who is on no side but one],” {kin.he} said.", "In the front row sat {kin.name}, who [took the same seat all day|has followed every hearing]. “[It has been a year of waiting for a date|I came for one answer],” {kin.he} said."),
                   say("{d.last} [has been in custody since the arrest|was released on bail in the autumn|took notes in a school exercise book]. A conviction could bring up to {asked} years.", "If convicted, {d.last} faces up to {asked} years in prison."), say("The first witness will be {case.witness}, who is to give evidence {t1:on}.")),
            weight=0.5, covered=0.25,
        ),
        Stage(
            titles=("{case.short:cap}: {witness.last} tells court “{case.said}”" , "“{case.said}”: {witness.last} heard in {case.short}", "{d.last} trial: defence tries to sow doubt in {case.short}", "Expert {expert.last} disputes evidence in {case.short}"),
            abstracts=("The evidence of {case.witness} takes up a whole day. The defence dwells on {case.doubt}.", "“{case.said},” a witness tells the court in {city.name}.", "Experts argue about {case.proof}."),
            leads=("“{case.said},” {witness.name}, {case.witness}, told the court in {city.name} {on}, and for a moment nobody in the room wrote anything down.", "The trial of {d.last} heard from its most important witness {on}: {witness.name}, {case.witness}. “{case.said},” {witness.he} [said|told the judges].", "There was a long silence in the {case.short} {on} after {witness.name}, {case.witness}, had finished. What {witness.he} had said was: “{case.said}.”"),
            then=(say("{lawyer.last} asked {witness.name} the same question in four ways[, and had the same answer four times| until the judge intervened]. At issue was {case.doubt}.", "Under questioning by {lawyer.last}, {witness.name} [conceded that memories fade|corrected a time by ten minutes|stuck to the account given to the police]. The defence dwelt on {case.doubt}."),),
            loose=(say("{expert.last} [told the court about|was heard on] {case.proof}. “[I can tell you what it is. I cannot tell you who|It is consistent with the charge, and with one or two other things|In twenty years I have seen that twice],” {expert.he} said."), say("{d.last} is charged with {case.charge}, which {d.he} denies. {case.story:cap}."), say("{prosecutor.last} returned to {prosecutor.his} theme: “{case.crown}.”", "“{case.defence},” {lawyer.last} said outside the courtroom."), say("{kin.name}, [who attends every day|in the first row], [held the arm of a court usher|shook {kin.his} head]. “[You learn things here that you'd rather have been told at home|It was good to hear it said aloud],” {kin.he} said."), say("The trial opened {t0:on} and is planned to last {days} days.", "The court has now heard [a third|nearly half] of {witnesses} witnesses.")),
            after=(0.95, 2.5), weight=0.4, covered=0.15,
        ),
        Stage(
            titles=("{d.last} found guilty of {case.charge} in {case.short}", "{case.short:cap}: {d.last} guilty after {hours} hours", "Guilty: court convicts {d.last} in {case.short}", "{city.name} court finds {case.job} guilty of {case.charge}"),
            abstracts=("After {hours} hours of deliberation, the court in {city.name} convicts {d.name} of {case.charge}. Sentence follows.", "The court believed {case.witness} and was persuaded by {case.proof}.", "{d.name} showed no emotion. {d.his:cap} lawyer will appeal."),
            leads=("{d.last} was found guilty of {case.charge} by a court in {city.name} {on}, after {hours} hours of deliberation.", "The {case.short} ended in a conviction {on}. {d.last} [stared at the floor|closed {d.his} eyes|wrote something down] as the verdict was read.", "One word, spoken by {judge.last} in a full courtroom in {city.name} {on}, decided the {case.short}: guilty."),
            then=(say("{judge.last} said the court had no reasonable doubt. It had been convinced by {case.proof} [and by a witness who had “nothing to gain”|, taken together with the evidence of {case.witness}].", "{judge.last} read the reasons for {hours} minutes. Weight was given to {case.proof}; the argument about {case.doubt} was rejected."), say("“[Justice is slow and it walked in today|That is the verdict the evidence asked for],” said {prosecutor.last}. {lawyer.last} [announced an appeal|said the file was “not closed, only turned over”].", "{lawyer.last} [will appeal|has a week to appeal]. “{case.defence},” {lawyer.he} repeated.")),
            loose=(say("According to the court's findings, {case.story}."), say("{kin.name}, who [followed the whole trial|had brought a photograph], [cried quietly|asked to be left alone and then was not]. “[It doesn't bring anything back, but it puts something down|I will sleep tonight, or at least lie down],” {kin.he} said."), say("Sentence is to be passed {t4:on}. {prosecutor.last} has asked for {asked} years." , "The prosecution wants {asked} years; {judge.last} will pass sentence {t4:on}."), say("“{case.said},” {case.witness} had told the court. [That sentence hung over the trial|The defence never quite got rid of it]."), say("The trial opened {t0:on}. The court heard {witnesses} witnesses.")),
            after=(1.5, 3), weight=0.62, covered=0.4, when=lambda f: f.guilty,
        ),
        Stage(
            titles=("{d.last} cleared of {case.charge} in {case.short}", "Acquittal of {d.last} in {case.short}: court sees “room for doubt”", "{case.short:cap}: {d.last} walks free from {city.name} court", "Not guilty: {city.name} court acquits {case.job} of {case.charge}"),
            abstracts=("The doubt that decided it concerned {case.doubt}. Prosecutors may appeal.", "After {hours} hours, the judges in {city.name} acquit {d.name}.", "“{case.defence},” the defence had argued. The court agreed, in part."),
            leads=("{d.last} was cleared of {case.charge} {on} by a court in {city.name} that found the evidence “close, but not closed”.", "{d.last} left the court in {city.name} by the front door {on}, acquitted of {case.charge}.", "There were gasps in {city.name} {on} when {judge.last} announced the verdict in the {case.short}: not guilty."),
            then=(say("{judge.last} said the court had been troubled by the question of {case.doubt}. “[We do not say that it did not happen. We say that it has not been proved|A suspicion that everyone shares is still a suspicion].”"), say("“{case.defence},” {lawyer.last} had argued, and the court agreed. {prosecutor.last} [said the state would study the reasons|would not say whether there would be an appeal].", "{prosecutor.last} [gathered {prosecutor.his} papers without a word|spoke of a hard day]. {lawyer.last} called the verdict “[brave|what the law is for]”.")),
            loose=(say("The prosecution had relied on {case.proof}, [which experts read in different ways|and on {case.witness}]."), say("The case began when {case.story}."), say("{d.last} [thanked {d.his} family|said {d.he} wanted to go home and feed a dog]. “[I have my name back, a little used|I don't feel like celebrating; somebody is still missing an answer],” {d.he} said."), say("{kin.name}, who had [attended every day|waited a year for the verdict], was [bitter|calm]. “[Then who?|They weighed paper, and I weigh something else],” {kin.he} said."), say("The trial had begun {t0:on}; {witnesses} witnesses were heard.")),
            after=(0, 0), weight=0.62, covered=0.4, when=lambda f: not f.guilty,
        ),
        Stage(
            titles=("{case.short:cap}: {d.last} sentenced to {years} years", "{years} years in prison for {d.last} over {case.short}", "{city.name} judge jails {case.job} for {years} years in {case.short}", "{d.last} gets {years} years for {case.charge}"),
            abstracts=("The prosecution had asked for {asked}. {d.name} will appeal.", "{judge.name} spoke of [planning|a breach of trust|coldness] and of a clean record until then.", "The sentence closes the {case.short}, for now."),
            leads=("{d.last} was sentenced to {years} years in prison in {city.name} {on} for {case.charge}.", "A judge in {city.name} jailed {d.last} for {years} years {on}, closing a case that has been followed all over {c.name}."),
            then=(say("“[You had many mornings on which to stop|What you did took planning, and what you said about it took more|You have shown this court good manners and no regret],” {judge.last} told {d.him}. The prosecution had asked for {asked} years."),),
            loose=(say("In {d.his} favour, {judge.last} counted [a clean record and poor health|that {d.he} had not fled]. Against {d.him} stood {case.proof}."), say("{lawyer.last} said the appeal was “[written|in the post]”. “{case.defence}.”"), say("{kin.name}, who [had come each day|was in the first row], did not look up. “[It was never about a number|Now I have nowhere to be at nine in the morning],” {kin.he} said."), say("The court had found that {case.story}."), say("The verdict fell {t2:on} after {hours} hours. With time already served, {d.last} could ask for release after [two thirds of the term|half of it, at the earliest].")),
            after=(1, 3), weight=0.55, covered=0.3, when=lambda f: f.guilty,
        ),
    ),
    share=1.3,
    rhythm=OFFICE,
)  # fmt: skip

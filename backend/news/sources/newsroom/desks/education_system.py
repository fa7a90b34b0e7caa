# ruff: noqa: E501 (prose reads better unbroken)
"""The education desk on ministries, exams, teachers, universities and trades: what concerns a whole country."""

from __future__ import annotations

from dataclasses import dataclass, replace

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Reform:
    """A plan for a country's schools: the idea, who is for and against, and what comes of it."""

    short: str
    plan: str
    why: str
    pro: str
    con: str
    room: str
    study: str
    softer: str

    @property
    def the(self) -> str:
        """The plan's name inside a sentence."""
        uncounted = (
            "compulsory music lessons",
            "mother tongue teaching",
            "rural school buses",
            "artificial intelligence in class",
        )
        return self.short if self.short in uncounted else f"the {self.short}"


REFORMS: tuple[Reform, ...] = (
    Reform("end of school marks", "abolish marks for children under eleven and replace them with a letter to the parents", "marks tell a child where it stands and not where to go", "A number ends a conversation that a sentence would begin", "Parents can read a three; they can't read between the lines", "In one class of twenty-six, the first letters took a teacher four weekends", "pupils without marks read as well and fret less", "letters twice a year, and marks on request"),
    Reform("longer school day", "keep all schools open until four, with lunch and sport", "half of the children go home to nobody", "It gives a childhood back to those whose parents work", "They are small, they need a carpet and not a corridor", "In a trial school, the hour after lunch is so quiet that one hears the clock", "the gain is largest in mathematics and smallest in mood", "four days out of five"),
    Reform("single school type", "merge its two kinds of secondary school into one", "ten is too early to be sorted", "We decide about pilots and bakers before they can tie a tie", "You do not lift the slow by stopping the quick", "Two staff rooms with two coffee machines will have to become one", "early sorting widens the gap between rich and poor", "a choice for each district"),
    Reform("school textbooks law", "give all schools the same free textbooks", "a third of the pupils share a book or have none", "A book is the one thing that still works in a power cut", "One book for all is one opinion for all", "A storeroom holds eleven editions of the same atlas, with four capitals", "free books help most where there are none at home", "a list of three books for each subject"),
    Reform("four-day week", "let schools close on Fridays for want of teachers", "there is nobody to stand in front of the class", "An honest four days are better than a pretended five", "And on Fridays they are to educate the television?", "On the first free Friday, the library had to fetch chairs", "results fall slightly and applications for teaching posts rise a great deal", "Friday mornings with sport and older pupils as helpers"),
    Reform("compulsory music lessons", "teach each child an instrument for two years", "the list of instruments in the country's schools fits on a page", "Nobody is bad at everything in a school with drums", "There is no money for roofs, but there is for recorders", "In a corridor, nine violins are practising nine different things", "children who play together quarrel less", "one year, and a choice of choir"),
    Reform("school inspection reform", "announce inspections only on the morning", "a school with six weeks' notice is a stage set", "I wish to see the Tuesday and not the première", "It treats us as suspects with chalk", "The plants in the entrance hall go back to the hire firm after each visit", "surprise visits find more faults and mend fewer", "a day's notice, by telephone"),
    Reform("rural school buses", "close schools with fewer than forty pupils and run buses instead", "a child in a class of four is taught by whoever is left", "A good school an hour away is better than a poor one next door", "You close the school, then the shop, then the village", "One bus would serve nine hamlets and leave at ten past six", "long rides cost children sleep and friends", "a limit of forty minutes on any ride"),
    Reform("mother tongue teaching", "teach the first three years in the language that a child speaks at home", "a fifth of the pupils do not understand their first lesson", "One learns to read once, and it should be in one's own words", "We will bring up children who cannot order a coffee in the capital", "In a border school there are five languages in the first row", "pupils who start in their own tongue overtake the others by eleven", "two languages from the first day"),
    Reform("ban on private lessons", "forbid teachers to give paid private lessons to their own pupils", "marks have acquired a price", "Nobody should have to buy in the afternoon what was held back in the morning", "It will go on in kitchens, and the kitchens will be dearer", "A notice board at a school lists hourly rates beside the football results", "three families in ten pay for lessons", "a register and a maximum price"),
    Reform("school meals plan", "give every primary pupil a free hot meal", "teachers can tell by eleven o'clock who has eaten", "You cannot spell on an empty stomach, and I'm not speaking in images", "The state should not be cooking for the children of surgeons", "A kitchen built for ninety will have to serve four hundred in three sittings", "free meals raise attendance and, a little, marks", "free meals for the first four years"),
    Reform("artificial intelligence in class", "give all pupils over twelve a tutor program", "they use one already, and it is the wrong one", "A patient teacher for each child, at the price of a bus ticket", "It knows everything, and it doesn't notice when a child is crying", "In a trial class, two boys had taught it to write in their handwriting", "pupils learn faster and remember less", "a trial in sixty schools"),
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    c: Country
    r: Reform
    minister: Person
    union: Person
    head: Person
    parent: Person
    scholar: Person
    critic: Person
    city: City
    cost: Money
    schools: int
    pct: int
    crowd: int
    year: int
    trial: int


def _plan(scene: Scene) -> Plan:
    r = scene.fresh("reform", REFORMS, uses=2)
    c = scene.country(f"reform {r.short}")
    return Plan(
        c, r, replace(c.minister("education"), role=f"the {c.demonym} education minister"), scene.person(c, "who leads the largest teachers' union"), scene.person(c, "a headteacher"), scene.person(c), scene.person(None), scene.person(c, f"who speaks on schools for {c.opposition.name}"),
        scene.pick(c.cities), scene.money(c.land.people_m * 4e6, c.land.people_m * 3e7, c.currency), scene.near(900, 14_000), scene.between(38, 66), scene.near(2_000, 30_000), scene.start.year + scene.between(1, 2), scene.between(12, 90),
    )  # fmt: skip


REFORM = Beat(
    "school reform",
    _plan,
    (
        Stage(
            titles=("{c.demonym} minister {minister.last} plans school reform: {r.short}", "{c.name} to {r.plan}", "Schools in {c.name}: {minister.last} wants {r.short}", "{r.short:cap}: what {c.name} plans for its {schools} schools", "Teachers split over {r.short} in {c.name}"),
            abstracts=("The plan is to {r.plan}. It would cost {cost} a year.", "“{r.pro},” says {minister.name}, the education minister. “{r.con},” says the teachers' union.", "The reason given by the ministry: {r.why}."),
            leads=("{c.name} wants to {r.plan}, {minister.last} said {on}.", "Because {r.why}, the {c.demonym} government wants to {r.plan}. {minister.last} presented the reform {on}.", "The biggest change for {c.demonym} schools in a generation was announced {on} in [a school gymnasium|a library in {city.name}]. The plan is to {r.plan}."),
            then=(say("“{r.pro},” {minister.last} [said|told an audience of headteachers|said, and paused]. The ministry puts the cost at {cost} a year for {schools} schools.", "{minister.last} [spoke for a quarter of an hour|kept it short]. “{r.pro}.” The bill is put at {cost} a year."),
                  say("{union.name}, {union.role}, [had read it by noon|did not hide a certain irritation]. “{r.con},” {union.he} said.", "“{r.con},” said {union.name}, {union.role}.")),
            loose=(say("{r.room}."), say("{scholar.name}, who [has compared eleven countries|teaches pedagogy], said the evidence was mixed: {r.study}.", "Research suggests that {r.study}, according to {scholar.name}, an education researcher. “[It is not magic and it is not nothing|The details will decide it],” {scholar.he} said."), say("{head.name}, {head.role} in {city.name}, [was for it|had doubts|had questions]. “[Give me two more teachers and I will try anything|We have had nine reforms and the same windows|I would start small, with those who want to],” {head.he} said."), say("In a survey, {pct}% of parents were in favour. {parent.name}, a parent in {city.name}, was [not one of them|among them]. “[I would like to know what happens to those in the middle of it|Mine will be out before it starts, so I can be generous],” {parent.he} said."), say("{critic.name}, {critic.role}, called the plan “[a headline with a timetable|half thought through]”.")),
            weight=0.42, covered=0.2,
        ),
        Stage(
            titles=("{crowd} march against {r.short} in {c.name}", "Teachers and parents protest over {c.demonym} {r.short}", "{c.demonym} school reform: {minister.last} booed at teachers' congress", "Resistance grows to {r.short} in {c.demonym} schools"),
            abstracts=("Some {crowd} people marched in {c.capital}. “{r.con},” one banner said.", "{minister.name} will not withdraw the plan to {r.plan}.", "Teachers fear for their afternoons, parents for their children, and {pct}% still like the idea."),
            leads=("About {crowd} teachers and parents marched through {c.capital} {on} against the plan to {r.plan}.", "{minister.last} had to wait for four minutes before {minister.he} could speak at a congress of teachers {on}. They were booing {r.the}.", "The quarrel about {r.the} has reached the streets. In {c.capital}, some {crowd} people protested {on}."),
            then=(say("“{r.con},” said {union.name}, {union.role}, from [the back of a lorry|a stage made of school desks].", "{union.name}, {union.role}, counted [the banners|the buses]. “{r.con},” {union.he} said. “[And nobody has asked us|We were given nine days to reply].”"), say("{minister.last} [held to the plan|would not be moved]: “{r.pro}.”", "“[I hear the noise and I read the letters, and the letters are kinder|A reform that nobody minds is a circular],” said {minister.last}.")),
            loose=(say("{r.room}."), say("The reform was announced {t0:on}. Its cost is put at {cost} a year."), say("{parent.name}, who had come from {city.name} [with a pushchair|with two classmates of the children], [carried a sign|held a drum]. “[I am not against change, I am against Monday|My son can wait, he is patient, he is six],” {parent.he} said."), say("{head.name}, {head.role}, [stayed at school that day|had closed for the day]. “[Somebody had to feed the stick insects|I agree with both sides until about ten in the morning],” {head.he} said."), say("{critic.name}, {critic.role}, [marched in the second row|asked for a pause of a year].")),
            after=(2, 5), weight=0.38, covered=0.15, chance=0.85,
        ),
        Stage(
            titles=("{minister.last} softens {c.demonym} school reform: {r.softer}", "Compromise on {r.short} in {c.name}", "{c.name} settles for {r.softer}", "Schools and ministry agree on {r.short} in {c.name}"),
            abstracts=("Instead of the full plan there will be {r.softer}.", "After talks with unions, {minister.name} gives ground. A first {trial} schools will begin.", "“[Half a reform is still a reform|It is less than I wanted],” the minister says."),
            leads=("The {c.demonym} government has watered down its plan to {r.plan}. There will be {r.softer}, {minister.last} said {on}.", "A compromise was found {on} in the dispute over {r.the} in {c.name}: {r.softer}.", "After [nine|eleven] hours in a school canteen, {minister.last} and the unions agreed {on} on {r.softer}."),
            then=(say("“[Half a reform is still a reform|It is less than I wanted and more than I feared],” said {minister.last}. It will start in {trial} schools."), say("{union.name}, {union.role}, [claimed a success|was tired and content]. “[We can teach with that|The canteen chairs helped; they are made for people of eight],” {union.he} said.")),
            loose=(say("The original plan, announced {t0:on}, was to {r.plan}."), say("{scholar.name}, an education researcher, said the compromise might be “[wiser than either side|the worst of both, or the best; we will know in ten years]”. Studies show that {r.study}."), say("The cost falls from {cost} a year to [about half|a third]."), say("{critic.name}, {critic.role}, spoke of [a retreat|common sense, at last]."), say("{parent.name}, a parent in {city.name}, [shrugged|had hoped for more]. “[We will be told in a letter|I've stopped explaining it to them],” {parent.he} said.")),
            after=(3, 6), weight=0.38, covered=0.18, chance=0.8,
        ),
    ),
    share=1.2,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Slip:
    """Something that went wrong, or right, with an exam."""

    short: str
    what: str
    paper: str
    how: str
    pupil: str
    board: str
    teacher: str
    remedy: str


SLIPS: tuple[Slip, ...] = (
    Slip("leaked mathematics exam", "the final mathematics exam had been for sale on a chat group for the price of a pizza", "mathematics", "A printer's assistant had photographed it for a cousin, and the cousin had friends", "I did it honestly, and now I do it honestly again", "We print under guard and they carry it out in a pocket", "You could see which of them were surprised, it was the honest ones", "a new paper within two weeks"),
    Slip("impossible question", "question nine of the physics exam had no answer", "physics", "A minus sign had been lost between the author and the printer", "I spent forty minutes proving that I was stupid", "Two of our checkers solved it, which is now a subject of inquiry", "The best in my class left the rest blank", "full marks for everyone who tried"),
    Slip("wrong exam results", "{n} thousand candidates were sent the wrong marks in their school-leaving exam", "school-leaving", "A column in a table had slipped by one line", "I had been a doctor for a day and a half", "The sum was right; the names were not", "I rang forty families, some to congratulate and some not", "letters to all of them by hand"),
    Slip("exam cheating by earpiece", "{n} candidates sat the law exam with earpieces the size of a lentil", "law", "A retired professor dictated from a van, until a lorry's radio drowned him out", "Mine was the row with the hum", "They were answering in chorus", "I wish they had listened to me as closely", "a ban of three years"),
    Slip("lost exam papers", "a mail van with {n} sacks of exam papers vanished", "history", "It was found behind a petrol station, with the papers damp and the driver asleep", "It was the only exam I ever liked", "We are drying them on radiators, page by page", "Nine hundred opinions on the same war, in a ditch", "estimated marks for those that cannot be read"),
    Slip("easy language exam", "the pass rate in the language exam jumped by {pct} points", "language", "The listening test had been recorded by an actor who spoke slowly because he was paid by the hour", "For once it was like a person talking", "Either they are better or we were kinder", "I hope that they don't find out how fast people really speak", "a harder recording and no change to the marks"),
    Slip("heatwave in exam hall", "an exam was stopped when {n} candidates fainted in a glass hall", "chemistry", "The blinds had been taken down to prevent signals from outside", "The ink ran down my arm", "We followed the rules, the rules had not been in the sun", "I carried out two of them and a desk", "a second sitting, in a church"),
    Slip("exam app crash", "the first exam on screens broke off when {n} thousand candidates pressed the same key", "geography", "The servers had been rented by the hour, and the hour was over", "I watched a river draw itself and then stop", "It had worked with forty testers and a cake", "We fetched paper from the staff toilet", "a second date, with pencils"),
    Slip("marking delay", "exam results would be {n} days late for want of markers", "school-leaving", "One marker in five had given up over pay of a few coins a script", "My whole summer has a question mark on it", "You can't hurry a judgement, you can only pay for it", "I mark on trains, the marks get worse in tunnels", "extra pay for weekend marking"),
)  # fmt: skip


@dataclass(frozen=True)
class Exam:
    c: Country
    s: Slip
    city: City
    pupil: Person
    board: Person
    teacher: Person
    parent: Person
    minister: Person
    n: int
    pct: int
    age: int
    candidates: int
    body: str


def _exam(scene: Scene) -> Exam:
    s = scene.fresh("exam", SLIPS, uses=3)
    c = scene.country(f"exam {s.short}")
    body = scene.pick(("the exams office", "the national board of examiners", "the examinations council"))
    return Exam(c, s, scene.pick(c.cities), scene.person(c, she=True if "oldest" in s.short else None), scene.person(c, f"the director of {body}"), scene.person(c), scene.person(c), replace(c.minister("education"), role=f"the {c.demonym} education minister"), scene.between(11, 42), scene.between(12, 31), scene.between(79, 93), scene.near(9_000, 240_000), body)  # fmt: skip


EXAM = Beat(
    "exams",
    _exam,
    (
        Stage(
            titles=("Exams in {c.name}: {candidates} candidates hit by {s.short}", "{s.short:cap} in {c.name}: what happened", "{c.demonym} {s.paper} exam: {s.what}", "“{s.pupil}”: the {s.short} in {c.name}", "{s.short:cap} embarrasses {c.demonym} examiners"),
            abstracts=("{s.how}.", "“{s.board},” says the director of {body}.", "The matter concerns {candidates} candidates. “{s.teacher},” a teacher says."),
            leads=("In {c.name}, {s.what}, {body} said {on}.", "It was confirmed {on} that in {c.name} {s.what}.", "The {c.demonym} exam season has its story: {s.what}, {body} announced {on}."),
            then=(say("{s.how}. “{s.board},” said {board.last}.", "“{s.board},” said {board.last}, [who looked tired|in a statement of four lines]. {s.how}."), say("“{s.pupil},” said {pupil.name}, one of {candidates} candidates.", "{pupil.name} of {city.name}, a candidate, [laughed about it|had not slept]. “{s.pupil},” {pupil.he} said.")),
            loose=(say("{teacher.name}, who teaches in {city.name}, said: “{s.teacher}.”", "“{s.teacher},” said {teacher.name}, a teacher of twenty years."), say("{minister.last} [promised clarity within days|asked for a report by the weekend|telephoned the director]. “[An exam is a promise|It is one sheet of paper and it weighs a year],” {minister.he} said."), say("{parent.name}, whose [son|daughter|twins] sat the exam, [had written to the ministry|was counting to ten]. “[We had cancelled a holiday for that date|In our house nobody says the word],” {parent.he} said."), say("About {candidates} people sit the {s.paper} exam each year[, in two hundred halls| all over {c.name}].")),
            weight=0.38, covered=0.2,
        ),
        Stage(
            titles=("After {s.short}, {c.name} offers {s.remedy}", "{c.demonym} exams: {s.remedy}", "{body:cap} answers {s.short} with {s.remedy}"),
            abstracts=("{body:cap} has decided. The answer is {s.remedy}.", "“{s.pupil},” one candidate says. There will be {s.remedy}.", "Days after the {s.short}, {minister.name} speaks of [a fair way out|lessons learned]."),
            leads=("{body:cap} of {c.name} found a way out {on} after the {s.short}: {s.remedy}.", "The {s.short} in {c.name} has a sequel. There will be {s.remedy}, {minister.last} announced {on}.", "Candidates in {c.name} learned {on} what the {s.short} means for them: {s.remedy}."),
            then=(say("“[We looked for the solution that was least unfair|It will not please all, and it's for all],” said {board.last}.", "{board.last} called it “[fair to most and cruel to none|the third-best solution, the others being impossible]”."),),
            loose=(say("It had become known {t0:on} that in {c.name} {s.what}."), say("“{s.pupil},” said {pupil.name}, a candidate from {city.name}, who [was relieved|will take it as it comes]."), say("{teacher.name}, a teacher, [was content|would have done otherwise]. “{s.teacher},” {teacher.he} said."), say("{s.how}."), say("{parent.name}, a parent, wants [an apology in writing|the cost of a cancelled holiday back]."), say("{minister.last} said procedures would be [checked from pen to post|looked at by outsiders].")),
            after=(1.5, 5), weight=0.3, covered=0.12, chance=0.8,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Staff:
    """News of teachers: shortage, pay, prizes and what they do at night."""

    head: str
    lead: str
    detail: str
    voice: str
    who: str
    boss: str
    pupil: str


STAFF: tuple[Staff, ...] = (
    Staff("{c.name} lacks {n} thousand teachers, ministry admits", "{c.name} is short of {n} thousand teachers, the education ministry said {on}", "In physics, three advertised posts in four draw no applicant at all", "I am a geographer, I teach four subjects and believe in one", "a teacher in her ninth year of cover", "We are fishing in an empty pond with a short rod", "We had a student, a baker and then a film"),
    Staff("retired teachers return to {city} classrooms", "The town of {city} asked its retired teachers to come back {on}, and {n} of them did", "The oldest is 78 and brought her own chalk", "The children have changed less than the coffee", "a Latin teacher of 74", "I only asked for mornings, and they came for the day", "She knows what you are doing without looking up"),
    Staff("teachers in {c.name} vote for strike over class sizes", "Teachers in {c.name} voted by {pct}% {on} to strike over classes of up to {n} pupils", "The limit was meant to fall ten years ago, by decree", "I can teach twenty-four, I can only guard the rest", "a primary teacher", "A promise on paper is cheaper than a classroom", "You put your hand up and it goes to sleep"),
    Staff("{city} teacher wins national prize for a lesson on doubt", "A teacher from {city} won the {c.demonym} teaching prize {on} for a course in which pupils must prove her wrong", "Once a term she teaches something false, and the first to find it gets cake", "They should trust me for being checkable", "the winner", "She is the reason that other staff now look things up", "I found the mistake in week three, and it was about frogs"),
    Staff("assaults on teachers up by {pct}% in {c.name}", "The number of assaults on teachers in {c.name} rose by {pct}% last year, a union said {on}", "Most were by parents, and most of them by message", "I was told at a parents' evening that she knew where my car was", "a science teacher", "A school gate is not a complaints desk", "He went home early and came back with a beard"),
    Staff("career changers fill gaps: from bank to blackboard in {city}", "The first {n} graduates of a course for career changers began to teach in {city} {on}", "Among them are a pilot, two bankers and a judge's clerk", "I used to lose people's money, now I lose their pencils", "a former fund manager", "They know the world, and in November they know the flu", "He talks about interest and it's actually interesting"),
    Staff("teacher pay: {c.name} offers {small}% and a free train ticket", "The government of {c.name} offered its teachers {small}% more pay {on}, and free travel by train", "The unions had asked for twice as much and no ticket", "I live four minutes from the school", "a teacher of sport", "It is an offer, it's meant to be the first one", "Ours corrects on the bus, she could do it lying down"),
    Staff("young teachers quit: one in {few} in {c.name} gone after five years", "One in {few} new teachers in {c.name} leaves within five years, a study found {on}", "They name paperwork before pay, and loneliness before both", "Nobody had told me that you are alone with thirty people", "who left after two years and now makes cheese", "We train them for four years and then we throw them in", "We had four class teachers, we called them by the season"),
    Staff("sabbaticals bring teachers back in {city}, trial shows", "A trial in {city} in which teachers may take every eighth year off has cut resignations by {pct}%, the town said {on}", "Most used the year to read, to mend a house or to nurse a parent", "I came back because I had been allowed to leave", "a chemistry teacher", "It costs less than finding a new one", "She went round the world and still knew my name"),
    Staff("teachers' housing: {city} builds flats next to schools", "The town of {city} is to build {n} flats for teachers, it said {on}, because they can't afford to live there", "Two who applied had been living in a camper van in the school car park", "I could hear the first bell from bed", "a music teacher", "We lost eleven teachers to the rent", "You see him in slippers, it's never the same again"),
    Staff("dog joins teaching staff at {city} school", "A school in {city} has put a retired guide dog on its staff list {on}, with a timetable" , "It lies beside children who read aloud, and snores at commas", "The most difficult class is now the quietest, because he is asleep", "a remedial teacher", "He never cancels", "I read him the whole book, and he liked the wolf"),
    Staff("hours of paperwork: {c.demonym} teachers count to {n}", "Teachers in {c.name} spend {n} hours a month on forms, according to a diary study published {on}", "One form asks whether the form before it was useful", "I became a teacher to be with children, and I am with a printer", "a class teacher", "We will cut one form in three, and I'll begin with mine", "She types while you are telling her something"),
)  # fmt: skip


@dataclass(frozen=True)
class StaffNews:
    c: Country
    s: Staff
    city: City
    teacher: Person
    boss: Person
    pupil: Person
    union: Person
    minister: Person
    n: int
    pct: int
    few: int
    small: float
    wage: Money


def _staff(scene: Scene) -> StaffNews:
    s = scene.fresh("staff", STAFF, uses=3)
    c = scene.country(f"staff {s.detail}")
    return StaffNews(c, s, scene.pick(c.cities), scene.person(c, she=True if " her " in s.lead + s.who else None), scene.person(c, scene.pick(("who runs the regional schools office", "a headteacher", "the head of schools in the district"))), scene.person(c, f"aged {scene.between(9, 16)}"), scene.person(c, "who leads the teachers' union"), replace(c.minister("education"), role=f"the {c.demonym} education minister"), scene.between(11, 38), scene.between(14, 41), scene.between(3, 6), scene.tenth(2.1, 5.4), scene.money(24_000, 51_000, c.currency))  # fmt: skip


TEACHERS = Beat(
    "teachers",
    _staff,
    (
        Stage(
            titles=("{s.head:cap}", "“{s.voice}”: teachers in {city.name}"),
            abstracts=("{s.detail}.", "“{s.voice},” says {teacher.name}, {s.who}.", "“{s.boss},” says an official. {s.detail}."),
            leads=("{s.lead}.", "{s.lead}. [In the staff rooms, few were surprised|Headteachers had seen it coming|It had been in the air for a while]."),
            then=(say("“{s.voice},” said {teacher.name}, {s.who}. {s.detail}.", "{s.detail}. {teacher.name}, {s.who}, [knows the feeling|tells it without complaint]. “{s.voice},” {teacher.he} said."), say("{boss.name}, {boss.role}, [agreed|sighed|put it more drily]. “{s.boss}.”", "“{s.boss},” said {boss.name}, {boss.role}.")),
            loose=(say("“{s.pupil},” said {pupil.name}, {pupil.role}.", "Pupils notice it too. “{s.pupil},” said {pupil.name}, {pupil.role}."), say("{union.name}, {union.role}, [wants a contract for the whole country|asked for smaller classes first]. “[Respect is a number, too|We have been patient for a whole government],” {union.he} said.", "For the union, {union.name} spoke of “[a profession that is being worn down|the cheapest reform of all: pay us]”. A new teacher in {c.name} earns {wage} a year."), say("{minister.last} said the government was “[training more than ever|listening, with a notebook]”.", "At the ministry, {minister.last} [pointed to a record intake|promised talks]. Starting pay is {wage} a year."), say("Training takes [four|five] years, and [one in three gives up before the end|applications have begun to rise again].")),
            weight=0.3, covered=0.14,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Campus:
    """What a university does or suffers, with the quarrel about it and its outcome."""

    short: str
    does: str
    why: str
    rector: str
    prof: str
    field: str
    detail: str
    end: str


CAMPUSES: tuple[Campus, ...] = (
    Campus("closure of classics department", "close its department of classics after {years} years", "nine first-year students, and costs of a chair each", "I love Homer and I have a deficit", "You cannot teach where you came from if you sell the map", "a Latinist", "Students have read the whole of an epic aloud outside the rector's window, in shifts", "a joint department with a neighbouring university"),
    Campus("tobacco donation", "accept {gift} from a tobacco heir for a hospital wing", "a wing that has leaked since it was built", "Money has no smell, the ward has", "We would be treating the lungs that paid for it", "a chest physician", "A petition has the names of four former deans and one of the architects", "the money, without the name above the door"),
    Campus("fall in university ranking", "leave the international rankings altogether", "a fall of {n} places that nobody could explain", "We are not a hotel", "It is easier to leave the race when you are coming last", "an economist", "The formula gives more weight to foreign professors than to libraries", "its own report, with its own mistakes"),
    Campus("plagiarism affair", "examine the doctorate of its own vice-rector", "{n} pages that agree, word for word, with a report on drainage", "The rules apply on all floors", "We fail students for a paragraph", "a jurist", "The pages were found by a student who wrote on drains", "the loss of the title and the office"),
    Campus("merger of universities", "merge with its rival across the river", "two libraries, two boat clubs and one empty till", "Separately we are provincial, together we are somewhere", "It's a marriage for the sake of the furniture", "a historian", "The two have not played each other at football since a goal that one of them denies", "a joint graduate school, and two names"),
    Campus("essay program scandal", "replace all essays by oral exams", "{pct}% of the essays that seemed to be by the same hand, and it was not a hand", "I want to hear them think", "Thinking takes longer than eleven minutes and a stopwatch", "a philosopher", "A professor fed the machine his own lectures and got a better mark than his assistant", "essays by hand, in a room"),
    Campus("telescope quarrel", "hand its old observatory to the town for a hotel", "a lens that has clouded over and a car park that has not", "We look at the stars from a desert now", "They are selling the roof that opens", "an astronomer", "On clear Fridays {n} people still queue for a look at Saturn", "a museum, with one room for guests"),
    Campus("free speech row", "let a banned historian speak in its great hall", "an invitation by a student club of eleven", "A university that chooses the safe speaker has chosen", "There is a difference between a lectern and a megaphone", "a sociologist", "Police want {n} officers; the club has offered biscuits", "a debate instead, with two lecterns"),
    Campus("animal laboratory", "close its animal laboratory", "tests on chips that do as well for half of the price", "It isn't only kinder, it is better science", "You cannot ask a chip whether it is afraid", "a neurologist", "The last {n} macaques go to a sanctuary by the sea", "a closing date in three years"),
    Campus("department of baking", "give the bakers' college the rank of a faculty", "{n} patents on yeast and four applicants for each place", "It's chemistry that gets up early", "Next there will be a chair of sandwiches", "a chemist", "Applicants must bring a loaf and defend it", "a faculty for ten years, on trial"),
    Campus("library fire", "rebuild its burnt library with nothing but wood", "{gift} from graduates within a month of the fire", "It burned as concrete too", "I'd like to see the insurance form", "an engineer", "Firefighters had formed a chain and saved {n} thousand volumes, by hand", "a building of oak, with sprinklers"),
    Campus("professors' pay gap", "pay back {gift} to female professors", "a gap of {pct}% that had been explained for years and then was measured", "We looked, which is more than we had done", "An apology with interest is still late", "a statistician", "One had found her neighbour's pay slip in a printer", "equal steps for all, and open lists"),
)  # fmt: skip


@dataclass(frozen=True)
class Uni:
    c: Country
    u: Campus
    city: City
    name: str
    rector: Person
    prof: Person
    student: Person
    minister: Person
    outsider: Person
    years: int
    n: int
    pct: int
    gift: Money
    students: int
    votes: int
    against: int


def _uni(scene: Scene) -> Uni:
    u = scene.fresh("campus", CAMPUSES, uses=3)
    c = scene.country(f"campus {u.short}")
    city = scene.pick(c.cities)
    against = scene.between(4, 18)
    name = scene.pick((f"{city.name} University", f"the University of {city.name}"))
    return Uni(c, u, city, name, scene.person(c, f"the rector of {name}"), scene.person(c, f"{u.field} at the university"), scene.person(c), replace(c.minister("science"), role=f"the {c.demonym} science minister"), scene.person(None), scene.between(90, 410), scene.between(16, 70), scene.between(11, 29), scene.money(2e6, 4e7, c.currency), scene.near(6_000, 41_000), against + scene.between(2, 15), against)  # fmt: skip


UNIVERSITY = Beat(
    "universities",
    _uni,
    (
        Stage(
            titles=("{city.name} university plans to {u.does}", "University row in {city.name}: {u.short}", "Professors split over {u.short} at {city.name} university", "{rector.last} defends plan to {u.does}", "{u.short:cap} divides university of {city.name}"),
            abstracts=("The university wants to {u.does}. The reason given is {u.why}.", "“{u.rector},” says the rector. “{u.prof},” says {prof.name}.", "{u.detail}."),
            leads=("{name:cap} intends to {u.does}, its rector said {on}.", "A plan to {u.does} has divided {name}. The senate discussed it for [three|four|five] hours {on}.", "There was standing room only in the senate of {name} {on}, when {rector.last} explained why it should {u.does}." ),
            then=(say("{rector.last} named the cause: {u.why}. “{u.rector},” {rector.he} said.", "“{u.rector},” said {rector.last}, and mentioned {u.why}."), say("{prof.last} [stood up to disagree|will have none of it|answered before the applause had ended]. “{u.prof}.”", "“{u.prof},” said {prof.last}, [to applause from the gallery|who has taught there for two decades].")),
            loose=(say("{u.detail}."), say("{student.name}, who [sits in the senate for the students|is in the final year], was [undecided|of two minds|quoted on a banner]. “[We came to learn how to argue, and for once there's something to argue about|They asked us, which is new],” {student.he} said."), say("{minister.last} said universities were free to decide, “[and free to be wrong|within the budget]”.", "In {c.capital}, {minister.last} [would not be drawn|spoke of a matter for {city.name}].", "{minister.last} has [asked for the papers|seen the plan and has “no further questions”]."), say("{name:cap} has {students} students and is one of the [oldest|larger] in {c.name}.", "With {students} students, it is among the [larger|better-known] universities of {c.name}."), say("The senate votes {t1:on}.", "A vote of the senate is due {t1:on}.")),
            weight=0.34, covered=0.15,
        ),
        Stage(
            titles=("{city.name} university votes for {u.end}", "{u.short:cap}: university of {city.name} settles on {u.end}", "Senate in {city.name} ends quarrel over {u.short}"),
            abstracts=("The outcome is {u.end}. The vote was {votes} to {against}.", "“{u.prof},” {prof.name} had said. The senate found a middle way." , "{rector.name} gets [most of what was asked|part of it]."),
            leads=("By {votes:fig} votes to {against:fig}, the senate of {name} decided {on} in favour of {u.end}.", "The quarrel over the {u.short} at {name} ended {on} with {u.end}.", "It came down to a show of hands in {city.name} {on}: {votes:fig} for, {against:fig} against. The result of the dispute over the {u.short} is {u.end}."),
            then=(say("{rector.last} called it “[a decision that one can explain to a taxpayer|not my first choice and not my last]”.", "“[We have been a university for long enough to survive a vote|I said that I would listen, and I have],” said {rector.last}."),),
            loose=(say("The plan had been to {u.does}. Its reason was {u.why}."), say("{prof.last} [voted against|abstained]. “{u.prof},” {prof.he} had said in the debate."), say("{u.detail}."), say("{student.name}, a student, [had slept in the corridor to get a seat|was pleased]. “[It was better than most lectures|Somebody quoted me, I'll put it in my thesis],” {student.he} said."), say("{outsider.name}, who studies universities, saw in it “[a small case of a large trouble|the usual end: a committee and a compromise]”.")),
            after=(2, 6), weight=0.3, covered=0.1, chance=0.8,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip

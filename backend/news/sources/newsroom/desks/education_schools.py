# ruff: noqa: E501 (prose reads better unbroken)
"""The education desk on schools, nurseries and students: single reports from one place."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Local:
    """Something that happened in one place: two headlines, what happened, a detail, and three voices."""

    head: str
    alt: str
    lead: str
    detail: str
    head_says: str
    child_says: str
    parent_says: str
    next: str


_SCHOOLS: tuple[Local, ...] = (
    Local("{school} moves first lesson to ten past nine", "Pupils in {city} sleep longer as school starts later", "Pupils of {school} in {city} may sleep {n} minutes longer: lessons there begin at ten past nine, the school said {on}", "Absences on Monday mornings fell by {pct}% in a trial before the holidays", "We had been teaching bodies and hoping that the heads would follow", "I have breakfast now, it turns out I like porridge", "I start work at eight, so who wakes him?", "The town's bus company has changed two routes"),
    Local("{school} locks away mobile phones", "Phone ban at {city} school: pouches for {pupils} pupils", "Since {today}, {pupils} pupils of {school} in {city} hand in their telephones at the gate", "The phones spend the day in grey pouches with a magnet, and so does the headteacher's", "It was louder at break on the first day than in all of last year", "We had to ask each other things", "If something happens I would like to hear it from her", "The ban will be reviewed after two terms"),
    Local("Village school near {city} saved by {n} signatures and a shepherd", "Last school in valley near {city} stays open", "A primary school with {n} pupils near {city} will stay open after all, the district decided {on}", "It needed one more child, and a shepherd with three moved into the empty forge", "I have taught five of the grandmothers", "There are two in my year, and I am one of them", "A village without a school is a car park with cows", "The roof is to be mended in the summer"),
    Local("{school} finds asbestos and teaches in church", "Asbestos closes {city} school: lessons in the nave", "Builders found asbestos above a ceiling of {school} in {city}, and since {today} {pupils} pupils have been taught in the church next door" , "Each class has its own aisle, and mathematics is in the vestry", "The acoustics are very good for shouting", "We are not allowed to run, but you can slide", "I want to know for how many years they breathed it", "A report on the air in the building is due within the month"),
    Local("{city} pupils cook their own school lunch", "School lunch in {city}: the cooks are eleven", "At {school} in {city}, pupils cook lunch for {pupils} from {today}, in teams of twelve", "The budget is {sum} a head, and nothing may come out of a packet", "They waste less, because they know who peeled it", "I cried, but only because of the onions", "He corrects my sauces", "Three more schools have asked for the recipes"),
    Local("Choir without a piano wins prize for {city} school", "{school} choir wins prize without a piano", "The choir of {school} in {city} won a national prize {on}, with no piano and {n} singers", "It had rehearsed in a corridor since the music room became a store", "The corridor has the best echo in the building", "You can hear when somebody is only moving his mouth", "They sing in the car, in parts", "A piano has been offered by a bank"),
    Local("Overcrowded school in {city} teaches in shifts", "{school}: mornings for some, afternoons for others", "{school} in {city} began to teach in two shifts {on}, as it has {pct}% more pupils than places", "The first shift ends as the second is tying its shoes", "It's not a school day, it's a railway timetable", "My best friend is in the other shift, we leave notes under the desk", "One is at home in the morning and the other in the afternoon, and I am in the middle", "A new building has been promised for the year after next"),
    Local("{city} school opens forest classroom", "Lessons under larches for pupils of {school}", "A classroom without walls was opened by {school} in {city} {on}, under larches and a sail", "Pupils spend one day in five there, and {n} pairs of rubber boots stand by the door", "They learn fractions from twigs, and they learn that twigs break", "I saw a stoat and a decimal point", "We find worms in the washing machine", "Two teachers are being trained in first aid and axes"),
    Local("Chess becomes a school subject in {city}", "{school} puts chess on the timetable", "From {today}, all nine-year-olds at {school} in {city} have two lessons of chess a week", "The boards were made in the workshop from an old gymnasium floor", "It's the one lesson where silence is a plan", "I lost to the caretaker, who does not even look", "She lets me win, which is worse", "A match by post with a school abroad has begun"),
    Local("Uniforms go at {school} in {city}", "{city} pupils vote on school uniform and keep the tie", "After {years} years, {school} in {city} gives up its uniform, apart from the tie", "Pupils voted, and most wanted to keep the one thing that their parents hated most", "I expected a revolution and I got cardigans", "It takes me longer in the morning, but I know who everyone is", "It was the cheapest outfit he had", "Old blazers will be turned into seat covers"),
    Local("Robot joins remedial reading class in {city}", "{school} tries a robot that never gets bored", "{school} in {city} began a trial {on} with a robot that listens while children read aloud", "It is the size of a kettle, and it asks what happens next", "A child reads to it who has not read to me for a year", "It doesn't sigh", "I would rather they paid for a person", "University researchers will test {n} children in the summer"),
    Local("Teenagers teach pensioners to swim in {city}", "{school} swaps roles: pupils give lessons to the old", "Pupils of {school} in {city} have begun to teach swimming to people over seventy, and {on} the first {n} passed", "The oldest is 88 and had lived all her life beside a lake", "They discovered what it is to repeat something kindly", "She said her legs were listening, they were just slow", "He came home and thanked us for his school, which had never happened", "A certificate with a seahorse was presented"),
    Local("Heating fails: {school} in {city} sent home", "Cold classrooms close school in {city}", "{school} in {city} sent its {pupils} pupils home {on} when the boiler failed and classrooms fell to nine degrees", "The boiler is {years} years old and its maker no longer exists", "I have a plumber's number on my telephone as a favourite", "You could see the teacher's words", "It was the third time this winter, so the word is not accident", "The council has set aside {sum} for a new one"),
    Local("{school} drops homework for a year", "No homework in {city}: school tries an experiment", "No pupil at {school} in {city} will get homework for a year, the school announced {on}", "The last sheet was folded into an aeroplane by each class and thrown off the roof", "We found that we were marking the parents", "I read a book and nobody had asked me to", "How do I know what she is learning, if I don't do it myself?", "Test results will be compared with those of {n} other schools"),
    Local("Silent playground in {city}: neighbours lose lawsuit against school", "Court lets children of {school} be loud", "A court ruled {on} that the children of {school} in {city} may make noise at break", "A neighbour had measured {pct} decibels above the limit from a deckchair", "We had been playing statues for a month", "I can whistle again", "You do not move in next to a school and complain of children", "The neighbour has been invited to sports day"),
    Local("Lost school bell of {city} comes home after {years} years", "{school} gets its bell back from the sea", "A bell that was stolen from {school} in {city} {years} years ago was hung up again {on}, after divers had found it", "It has a crack, and it rings a little flat", "The electric one had no authority", "It goes right through your pencil", "My grandfather stole it, so we are a bit quiet about this", "It will be rung by the youngest each morning"),
)  # fmt: skip

_NURSERIES: tuple[Local, ...] = (
    Local("{n} months' wait for a nursery place in {city}", "Childcare in {city}: born in June, on the list since March", "Parents in {city} wait {n} months for a nursery place, a survey by the town found {on}", "Some register before they have told their own parents", "I have a waiting list for the waiting list", "There is a fish and it is called Captain", "I put her name down when she was a line on a test", "Two hundred places are to be added within two years"),
    Local("{city} nursery opens all night for shift workers", "Childcare round the clock: a night nursery in {city}", "A nursery that never closes opened in {city} {on}, for the children of nurses, bakers and bus drivers", "There are {n} beds, a night light and somebody who sings on request", "They sleep better than we expected, and we sleep less", "I had two stories and a banana", "I used to hand him over in a car park at five", "The town pays two thirds of the cost for a trial year"),
    Local("Free childcare for two-year-olds fills nurseries in {city}", "{city} childcare free from today, and full", "Childcare for two-year-olds has cost nothing in {city} since {today}, and there is not a place to be had", "Applications rose by {pct}% in the week before", "The state has given everybody a ticket and has not bought a train", "I can do my own zip", "Free and full is the same as not there", "Emergency groups are planned in {n} parish halls"),
    Local("Nursery staff in {city} quit for supermarket", "Childcare workers leave {city} nurseries for better pay", "Every fourth childcare worker in {city} has left within a year, many of them for the till of a supermarket that pays {pct}% more, a union said {on}", "One group has had five carers since the autumn", "I lose people to a shop that sells nappies", "Where did the one with the guitar go?", "My son has learned to say goodbye", "Talks on pay begin next week"),
    Local("Grandparents paid to mind children in {city}", "Childcare by granny: {city} tries a grant", "Grandparents who look after a child for {n} hours a week are paid {sum} a month in {city} from {today}", "They must take a course that covers choking, screens and saying no to the parents", "It recognises what is done anyway", "She cheats at snap", "My mother used to do it for nothing and complained less", "The first {pupils} grants have been paid out"),
    Local("Forest nursery near {city} goes through winter without a roof", "Childcare outdoors: {n} children, one wagon and no house", "A childcare group near {city} has spent a whole winter in the woods, and {on} was given a permit for good", "It owns a wagon, a stove and {n} ropes", "Sick days are down by half, the germs don't like it either", "If you stand still the robin comes", "He hangs his coat up, at home, by himself", "A second group begins after the holidays"),
    Local("Company nursery in {city} lets parents have lunch with toddlers", "Office childcare spreads in {city}", "Several firms in {city} opened a joint nursery {on} for the children of their workers", "Parents may visit at noon, and leave with purée on their cuffs", "It cuts both ways: they see us and we see them", "My dad has a chair that spins", "I no longer cry in the car park, and nor does she", "There are {n} places and {pupils} applicants"),
    Local("Nursery in {city} bans plastic toys", "Childcare with boxes and string: a {city} experiment", "A nursery in {city} put all its plastic toys in the cellar {on} and gave the children boxes, string and saucepans", "Quarrels fell by {pct}% in a month, according to a tally on the door", "Nobody fights over a box, because there's always another box", "It is a boat and also a dog", "The noise at home is now saucepans", "The toys go to a hospital"),
    Local("Speech delays in {city}: nurseries get therapists", "Childcare centres in {city} to help toddlers talk", "One child in five in {city} speaks too little at three, doctors said {on}, and nurseries are to get speech therapists", "The therapists sit on the floor and wait", "We turned off the background music first, it cost nothing", "I say spaghetti now", "He was quiet, and I took it for good manners", "There are {n} posts and so far four applicants"),
    Local("Nursery fees in {city} pass rents", "Childcare in {city} now costs {sum} a month", "A full-time nursery place in {city} costs {sum} a month on average, more than the rent of a small flat, a study found {on}", "Every third mother there works fewer hours than she would like", "Our largest costs are people and heating, and I can't do without either", "We had real strawberries", "I pay to work, like a hobby", "Parties disagree on who should bear the cost"),
    Local("Refugee mothers trained as childcare workers in {city}", "{city} fills childcare gap with new arrivals", "The first {n} women of a course for refugees started work in nurseries in {city} {on}", "Lullabies in nine languages are pinned above the changing table", "They had brought up more children than I have met", "She knows a song with a camel", "My daughter counts in two languages and argues in both", "A second course starts within weeks"),
    Local("Fathers take half of parental leave in {city} survey", "Childcare at home: the men of {city} push prams", "Nearly {pct}% of fathers in {city} take at least half of the parental leave, a survey showed {on}, the highest share in {c.name}", "A café has had to widen its door for prams, and the toilets have new tables", "The first week they ring the office, then the office rings them", "Daddy does the voices", "I have more respect and fewer clean shirts", "Employers there have begun to plan for it"),
    Local("Childminder of {city} retires after {pupils} children", "{years} years of childcare in one kitchen", "A childminder in {city} who has looked after {pupils} children in {years} years closed her kitchen door {on}", "Their heights are pencilled on the frame, which the family will take down and keep", "She had no forms, no ratio and no accidents", "She has a drawer that is only for us", "She minded me, then my son, and then she minded that we were late", "Three former charges are to open a nursery in her name"),
)  # fmt: skip

_STUDENTS: tuple[Local, ...] = (
    Local("Students in {city} sleep in gymnasium as rooms run out", "Student housing in {city}: {n} beds between the goalposts", "The university in {city} has put {n} camp beds into its gymnasium for students without a room, it said {on}", "Lights go out at eleven, by vote, and the basketball team practises elsewhere", "We admitted them and forgot that they lie down", "I have a locker, a lamp and a view of the scoreboard", "I rent out a cellar and had ninety calls", "A ship is to be moored in the harbour as a hall of residence"),
    Local("Students in {city} fight rise in fees", "Tuition fees to go up by {pct}% at {city} university", "Students occupied the rector's office in {city} {on} over a plan to raise fees by {pct}%", "They have labelled the furniture with what a term of it would cost", "We can raise fees or close the library at six", "I'd pay more, if I saw more of my professors", "When I studied it was free, and I voted for this, which I regret", "The senate decides within two weeks"),
    Local("Canteen of {city} students wins a star", "Student canteen in {city}: queue for the lentils", "The canteen of the university in {city} was named the best in {c.name} by a jury of cooks {on}", "A meal costs {sum}, and the chef left a hotel for it", "Students are honest critics, they leave it on the plate", "I chose my subject for the lectures and I stay for the dumplings", "Professors pay more and take seconds", "The recipe for the lentils is to be printed on the back of exam papers"),
    Local("{pct}% of students in {city} work nights, survey finds", "Students with two jobs: a survey from {city}", "More than {pct}% of the students in {city} work at night or at weekends to pay their way, a survey found {on}", "The average is {n} hours a week, and the average lecture is missed by one in three", "The full-time student is a figure in our statistics", "I learn anatomy on the night bus", "They are good workers, and they fall asleep on the crates", "The university will offer more courses in the evening"),
    Local("Students in {city} share flats with the old", "A room for an hour a day: {city} students move in with pensioners", "For an hour of help a day, {n} students in {city} live rent-free with pensioners, under a scheme that began {on}", "Contracts list the tasks: shopping, shutters, chess", "We match by bedtime; interests come later", "She proofreads my essays with a red pen", "He showed me how to ring my grandson, so that I could see him", "The waiting list has {pupils} names, most of them pensioners"),
    Local("Mental health: students in {city} wait {n} weeks for help", "Counselling for students in {city} overrun", "Students in {city} who ask for counselling wait {n} weeks, according to figures released {on}", "Requests have risen by {pct}% in three years", "By the time we ring back, they say it is fine, and it is not fine", "I told a vending machine that I was tired", "We were told to pull ourselves together, and some did not", "Tutors are to be trained to notice"),
    Local("Students of {city} build a bridge in a weekend", "Engineering students bridge a gap in {city}", "Students of engineering in {city} built a footbridge {on} over a stream that the council had promised to bridge for {years} years", "It is made of larch, cost {sum} and held the rector, her deputy and a donkey", "They asked for a permit afterwards, which I don't recommend", "It sways a bit, as it's meant to", "I had been walking round by the mill since I was at school", "The council will inspect it and has already used it"),
    Local("Foreign students leave {city} as visa rules bite", "{pct}% fewer foreign students in {city}", "The number of new students from abroad has fallen by {pct}% in {city}, the university said {on}, after the rules for visas were tightened", "The course in hydrology has three teachers and four students", "They don't protest, they apply elsewhere", "My visa ends eleven days before my exam", "They rented my rooms and brought me saffron", "The rector has asked for an exception"),
    Local("Student newspaper in {city} uncovers missing millions", "Student reporters in {city} bring down bursar", "The bursar of the university in {city} resigned {on} after the student newspaper had followed {sum} to an empty building site", "The paper has a staff of {n}, a leaking office and one good calculator", "They asked for the minutes, and nobody had ever done that", "I just wanted to know why the library closes at six", "It was the best thing I have read all year, and I am in it", "Auditors are to look at the last {years} years"),
    Local("Student loans: graduates in {city} owe {sum} each", "Debt follows students from {city} into their forties", "Students who leave the university in {city} owe {sum} on average, a report said {on}, and pay for {n} years", "One in eight pays off less than the interest", "It is not a loan, it is a tax with a name on it", "I know the sum by heart, like a telephone number", "He wants children and asks the bank", "The government is to publish proposals in the summer"),
    Local("Student rowers of {city} win by a canvas", "Boat race: {city} students end {years} years of defeats", "Students from {city} won the university boat race {on} for the first time in {years} years, by less than a metre", "The cox, who studies theology, lost her voice at the second bridge", "They train at five, so they attend nothing at nine", "I don't remember the last minute at all, I'm told it was good", "My husband lost eleven of these and cried like a child", "A barrel was rolled through the town"),
    Local("{city} students revive a dead language", "Eleven students in {city} speak a language nobody else does", "A group of students in {city} held a debate {on} in a language whose last speaker died {years} years ago", "They learned it from a court record, a cookbook and a curse", "They have invented a word for bicycle, and I disagree with it", "You dream in it, badly", "My great-grandmother would have had something to say, and could have", "A dictionary with {pupils} words will be printed"),
)  # fmt: skip


@dataclass(frozen=True)
class Scenes:
    c: Country
    m: Local
    city: City
    school: str
    n: int
    pct: int
    pupils: int
    years: int
    sum: Money
    chief: Person
    child: Person
    parent: Person
    expert: Person
    official: Person
    staff: int


_NAMES = ("Mill Lane School", "the Riverside School", "the Orchard School", "the school on Chapel Hill", "the Old Harbour School", "the Linden School", "the Upper Town School", "the Queen's Road School", "the Lyceum", "the Brickfield School", "the Meadow School", "the Station Road School", "the Northgate School", "the Weavers' School")  # fmt: skip


def _facts(scene: Scene, tag: str, table: tuple[Local, ...], chief: str, age: tuple[int, int], pay: tuple[int, int]) -> Scenes:  # fmt: skip
    m = scene.fresh(tag, table, uses=3)
    c = scene.country(f"{tag} {m.alt}")
    city = scene.pick(c.cities)
    child = scene.person(c, f"aged {scene.between(*age)}")
    return Scenes(
        c, m, city, scene.pick(_NAMES), scene.between(14, 48), scene.between(19, 46), scene.near(110, 890), scene.between(17, 63), scene.money(*pay, c.currency),
        scene.person(c, chief), child, scene.person(c), scene.person(None), scene.person(c, f"who is in charge of education in {city.name}"), scene.between(11, 74),
    )  # fmt: skip


def _school(scene: Scene) -> Scenes:
    return _facts(scene, "school", _SCHOOLS, "the headteacher", (9, 16), (3, 9))


def _nursery(scene: Scene) -> Scenes:
    return _facts(scene, "nursery", _NURSERIES, "who runs a nursery there", (3, 5), (410, 1_300))


def _student(scene: Scene) -> Scenes:
    return _facts(scene, "student", _STUDENTS, "the vice-rector", (19, 25), (12_000, 46_000))


SCHOOL = Beat(
    "schools",
    _school,
    (
        Stage(
            titles=("{m.head:cap}", "{m.alt:cap}", "“{m.child_says}”: {school} in {city.name}"),
            abstracts=("{m.detail}.", "“{m.head_says},” the headteacher says.", "“{m.parent_says},” says {parent.name}, a parent.", "“{m.child_says},” says a pupil. {m.next}."),
            leads=("{m.lead}.", "{m.lead}. [It was the talk of the school gate|The decision had been made in the staff room|The school has {staff} teachers]."),
            then=(say("“{m.head_says},” said {chief.last}. {m.detail}.", "{m.detail}. “{m.head_says},” said {chief.last}[, who has led the school for {years} terms|].", "{m.detail}. {chief.last} [has been asked about it every day|had to smile]. “{m.head_says},” {chief.he} said."),
                  say("“{m.child_says},” said {child.name}, {child.role}.", "{child.name}, {child.role}, [thought about it|did not look up|spoke for the class]. “{m.child_says},” {child.he} said.")),
            loose=(say("{parent.name}, who [has two children at the school|sits on the parents' council|was waiting at the gate], said: “{m.parent_says}.”", "“{m.parent_says},” said {parent.name}, [whose daughter is in the fourth year|a parent]."),
                   say("{expert.name}, a researcher in education, [knew of similar cases|was cautious]. “[One school is a story and not a study|Small changes work when the staff believe in them|Ask me again in three years],” {expert.he} said.", "{official.name}, {official.role}, said other schools would [be watching|make up their own minds]. “[We don't forbid good ideas|I would like to see it in February],” {official.he} said.", "Research on such things is thin, said {expert.name}, who teaches pedagogy: “[Most studies end when the money does|We measure what is easy].”"),
                   say("{m.next}."), say("The school has {staff} teachers and [no vacancies|three vacancies|a caretaker who knows every child by name].", "There are {staff} teachers at the school, which was [built in a hurry a generation ago|once a barracks|founded by weavers].")),
            weight=0.27, covered=0.12,
        ),
    ),
    share=0.9,
    rhythm=OFFICE,
)  # fmt: skip

CHILDCARE = Beat(
    "childcare",
    _nursery,
    (
        Stage(
            titles=("{m.head:cap}", "{m.alt:cap}", "“{m.parent_says}”: childcare in {city.name}"),
            abstracts=("{m.detail}.", "“{m.parent_says},” says {parent.name}.", "“{m.head_says},” says {chief.name}, who runs a nursery. {m.next}."),
            leads=("{m.lead}.", "{m.lead}. [Parents in {city.name} speak of little else|It was the talk of the playground|The news went round the sandpits]."),
            then=(say("“{m.parent_says},” said {parent.name}, [a nurse|a joiner|a clerk with one child and another on the way|who works from a kitchen table].", "{parent.name}, [a teacher|a tram driver|a cook|who shares the mornings with a neighbour], [knows what that means|laughed about it]. “{m.parent_says},” {parent.he} said."),
                  say("{m.detail}. {chief.last} [sees it every day|was matter-of-fact]: “{m.head_says}.”", "“{m.head_says},” said {chief.last}. {m.detail}.")),
            loose=(say("The children have their own view. “{m.child_says},” said {child.given}, {child.role}.", "“{m.child_says},” said {child.given}, {child.role}, and [went back to the sand|asked to be let through]."),
                   say("{expert.name}, an economist who has [worked on families|compared twelve countries], put it plainly: “[Every place pays for itself within six years|Countries get the childcare that they vote for|The cheap years turn out to be the dear ones].”", "According to {expert.name}, who studies early childhood, what matters is “[who is on the floor with them|the number of hands|that the same face opens the door]”."),
                   say("{official.name}, {official.role}, promised [more places|to look at the figures]. “[We build faster than we hire|I have a cousin on the list, and I can't help her either],” {official.he} said.", "The town spends [a tenth|an eighth] of its budget on childcare, said {official.name}, {official.role}."), say("{m.next}.")),
            weight=0.28, covered=0.12,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip

STUDENT = Beat(
    "students",
    _student,
    (
        Stage(
            titles=("{m.head:cap}", "{m.alt:cap}", "“{m.child_says}”: students in {city.name}"),
            abstracts=("{m.detail}.", "“{m.child_says},” says {child.name}, a student.", "{m.next}. “{m.head_says},” the university says."),
            leads=("{m.lead}.", "{m.lead}. [The campus has talked of little else|It is the start of the summer term|Students elsewhere in {c.name} are watching]."),
            then=(say("“{m.child_says},” said {child.name}, [who reads law|a student of physics|who is in the third year]. {m.detail}.", "{m.detail}. {child.name}, [a student of history|who studies biology|a second-year student], is one of them. “{m.child_says},” {child.he} said."),
                  say("“{m.head_says},” said {chief.last}.", "{chief.last} [did not argue|took it with humour|answered by letter]. “{m.head_says},” {chief.he} wrote.")),
            loose=(say("In the town, opinion is [divided|mostly kind]. “{m.parent_says},” said {parent.name}, [who lives near the campus|a shopkeeper|a neighbour]." , "“{m.parent_says},” said {parent.name}, who [lives opposite|has known the university for forty years]."),
                   say("{expert.name}, who studies higher education, [was not surprised|sees a pattern]. “[Universities are cities that think they are companies|Every generation of students is the first to be poor, according to itself, and this one has figures],” {expert.he} said.", "[Similar things are heard from|It is much the same on] other campuses, according to {expert.name} of [the student union's research office|a foundation]: “[It begins in one town and turns up in ten|The difference is that this time somebody counted].”", "“[Half of it is money and the other half is room|They are more sober than we were and more tired],” said {expert.name}, who has [taught students for thirty years|written a history of student life]."),
                   say("{m.next}."), say("The university has [some {pupils} teachers|{staff} departments], and [a long memory|a new rector].", "The student council, elected by {pct}% of those who could vote, [supports it|has asked for a hearing].")),
            weight=0.25, covered=0.1,
        ),
    ),
    share=0.8,
    rhythm=OFFICE,
)  # fmt: skip

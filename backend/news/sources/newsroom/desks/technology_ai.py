# ruff: noqa: E501 (prose reads better unbroken)
"""How the technology desk covers artificial intelligence: models, their uses, and who objects."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.places import City
from backend.news.sources.newsroom.schedule import OFFICE
from backend.news.sources.newsroom.world import Company, Country, Money


@dataclass(frozen=True)
class Model:
    """One AI story: the news, what two sides say, three details, and what came of it (`next_…`)."""

    head: str
    head2: str
    brief: str
    lead: str
    who: str
    quote: str
    critic: str
    reply: str
    details: tuple[str, str, str]
    next_head: str
    next_brief: str
    next_lead: str
    next_quote: str
    next_by: str = "critic"

    @property
    def d0(self) -> str:
        return self.details[0]

    @property
    def d1(self) -> str:
        return self.details[1]

    @property
    def d2(self) -> str:
        return self.details[2]


_MODELS: tuple[Model, ...] = (
    Model("{lab} AI model reads handwriting that defeats historians", "AI transcribes {big} parish registers in {city.name}",
          "The archive in {city.name} has let a model loose on {big} pages. It gets {good}% of the words right.",
          "An artificial intelligence model trained on old letters has transcribed {big} pages of parish registers in {city.name}, the city archive said {on}, a job that would have taken its volunteers {years} years.",
          "the city archivist", "It reads a drunken clerk better than I do, and it doesn't stop for lunch",
          "a palaeographer", "One word in fifty is wrong, and it's always the surname",
          ("The model, made by {lab}, was shown 4,000 lines transcribed by hand and left to work out the rest.", "Crossed-out words are its weakness. It tends to read them as if nobody had crossed them out.", "Family historians will be able to search the registers by name [next month|before the summer is out]."),
          "Archive corrects AI transcripts after family historians complain", "Readers found {small} ancestors who never lived. The archive in {city.name} will check names by hand.",
          "The {city.name} archive will have names in its AI transcripts checked by hand after readers reported {small} people who never existed, it said {on}.", "The machine prefers a name it has seen before, which is how half a village came to share a surname"),
    Model("{lab} chatbot gave wrong dosage advice, doctors find", "Doctors test AI chatbots on {small}00 patients' questions",
          "A team at {city.name} put {small}00 real questions to an AI chatbot. In {bad}% of answers the dose was wrong.",
          "A chatbot made by {lab} gave wrong or dangerous advice about medicines in {bad}% of the cases that doctors in {city.name} put to it, according to a test published {on}.",
          "who led the test", "It is never rude and never unsure, and the second part is the trouble",
          "a spokesperson for {lab}", "The app says on every screen that it is not a doctor",
          ("The testers used questions that patients had really asked a telephone service, with names removed.", "Most mistakes concerned children, whose doses depend on weight. The chatbot seldom asked for it.", "On first aid, the model did better than a printed leaflet."),
          "{lab} switches off medical answers in AI chatbot", "The chatbot now sends users with questions about doses to a pharmacist.",
          "{lab} has stopped its chatbot from naming doses of medicines, the company said {on}, after a test in {city.name} found errors in {bad}% of answers.", "We would rather be useless on this than wrong"),
    Model("Illustrators sue {lab} over AI training pictures", "AI company {lab} accused of copying {big} drawings",
          "The suit in {city.name} lists {big} drawings that the artists say were used without leave.",
          "A group of {illus} illustrators took {lab} to court in {city.name} {on}, saying that the company had trained an image generator on {big} of their drawings without asking.",
          "an illustrator of children's books", "I typed in my own name and got a fox I drew in a hospital waiting room",
          "a lawyer for {lab}", "A model looks at pictures as a student does, and no student pays the museum per glance",
          ("The artists ask for {sum} and for the drawings to be removed from the training data, which the company says is not technically possible.", "Among the exhibits is a generated picture that still carries half a signature.", "The case is the first of its kind in {c.name}. [Photographers|Translators] have been waiting for it."),
          "{lab} offers to license pictures for AI training", "A fund of {sum} would pay illustrators. The artists are divided.",
          "{lab} proposed {on} to pay illustrators from a fund of {sum}, days after {illus} of them sued the AI company in {city.name}.", "It's the price of a good coffee machine per artist, and they would own my style for ever", "who"),
    Model("{c.demonym} weather office tests AI forecast against supercomputer", "AI model beats supercomputer at predicting storms in {c.name}",
          "A model by {lab} needs a minute where the old system needs an hour. It is weaker on rain.",
          "The {c.demonym} weather office has begun to run an AI forecasting model beside its supercomputer, and on wind the newcomer was right {good}% of the time, it said {on}.",
          "the office's chief forecaster", "It has read forty years of weather and understands none of it, and still it wins on Tuesdays",
          "a meteorologist at the university of {city.name}", "The storm you care about is the one that has never happened before",
          ("The model was trained on records going back {old} years. A forecast takes about a minute on a machine the size of a fridge.", "On heavy rain it lags: showers come out too wide and too mild.", "For now, every warning to the public is still signed by a person."),
          "AI storm warning [proves right|passes first test] in {c.name}", "Both systems saw the gale coming. The AI saw it {hours} hours earlier.",
          "A gale that crossed {c.name} was forecast {hours} hours earlier by the AI model on trial at the weather office than by its supercomputer, officials said {on}.", "One storm is an anecdote, and I have asked the team not to print T-shirts", "who"),
    Model("School in {city.name} drops AI essay detector", "{small} pupils wrongly accused: school abandons AI detector",
          "The software flagged {small} essays by pupils who had written them in class, by hand.",
          "A secondary school in {city.name} has stopped using software that claims to recognise essays written by AI after it accused {small} pupils who had not touched a computer, the head teacher said {on}.",
          "the head teacher", "We gave it a page from the school's own rule book and it said a robot had written that",
          "a spokesperson for {lab}, which sells the detector", "The score is the start of a conversation and was never meant to be a verdict",
          ("The pupils' essays had been written in an exam hall, with pens.", "Those whose first language was another were flagged {fold} times as often.", "Homework essays will now be followed by a five-minute talk about them."),
          "More schools drop AI detector after {city.name} case", "The education authority tells teachers not to rely on scores.",
          "Another {dozen} schools in {c.name} have stopped using an AI essay detector since the case of {small} falsely accused pupils in {city.name} became known {t0:on}, the education authority said {on}.", "My mother has framed the accusation, because it said the essay was too good", "a pupil who had been accused"),
    Model("Call centre in {city.name} brings back people after AI trial", "AI agents could not calm customers, says {co.name}",
          "{co.name} had handed {good}% of calls to an AI voice. Complaints doubled.",
          "The telecoms operator {co.name} is rehiring {hires} call centre workers in {city.name}, months after it handed most calls to an AI voice, it said {on}.",
          "who runs customer service at {co.name}", "It could tell you your balance in nine languages, and it could not tell that you were crying",
          "a call centre worker", "They kept my headset in the drawer, still adjusted to my ears",
          ("Simple requests, such as a change of address, will stay with the machine, which was built by {lab}.", "Calls became shorter under the AI and more numerous, because customers rang again.", "The company had expected to save {sum} a year. It now expects to save a third of that."),
          "Telecoms customers will get button to skip AI agent", "The {c.demonym} regulator wants a way to a human in {secs} seconds.",
          "Telephone companies in {c.name} must let callers reach a person within {secs} seconds, the regulator said {on}, citing the failed AI trial at {co.name}.", "A menu with no exit is not service", "who heads the regulator"),
    Model("{lab} halves the power its AI model needs", "Smaller AI model from {lab} runs on a telephone",
          "The model keeps {good}% of the skill of its predecessor at a twentieth of the size, the company says.",
          "{lab} presented an AI model {on} that runs on a mobile phone without a connection and, the company says, keeps {good}% of the abilities of one twenty times its size.",
          "the company's head of research", "We threw out everything it knew about celebrities, and nobody on the test panel noticed",
          "a computer scientist at the university of {city.name}", "It's good engineering, and they chose the tests themselves",
          ("The model can summarise a page, translate between {langs} languages and set a timer. It cannot draw.", "Since nothing leaves the phone, hospitals and law firms are among the first to ask for it.", "Independent testers found it [a little worse|somewhat slower] than claimed on older handsets."),
          "Open AI model from {lab} downloaded {big} times", "Within days, tinkerers have it running on a toaster and an old calculator.",
          "The small AI model that {lab} released {t0:on} has been downloaded {big} times, the company said {on}, and turns up in devices it was never meant for.", "Somebody in {c.name} has it running inside a model railway, and it announces the trains", "who"),
    Model("AI-written novel withdrawn by publisher in {city.name}", "Publisher pulls novel after readers spot AI prompts",
          "Page {page} contained an instruction to the machine. The author says she forgot to delete it.",
          "A publisher in {city.name} withdrew a crime novel {on} after readers found, on page {page}, an instruction from the author to an AI model to make the next scene “sadder, about 400 words”.",
          "who owns the publishing house", "We have three proofreaders and they all thought it was modernism",
          "a bookseller", "Two customers have asked for it since, and I had to tell them it's gone",
          ("The novel had sold {big} copies.", "The model used was made by {lab}, which declined to comment.", "The house will ask writers to declare how a manuscript was made."),
          "{c.demonym} writers and publishers agree label for AI books", "A line on the back cover will say what the machine did.",
          "Publishers and writers in {c.name} agreed {on} on a line for the back cover of books written with the help of AI, after a novel was withdrawn in {city.name}.", "It will say nothing, some help or mostly, like the label on jam", "who"),
    Model("AI finds early signs of eye disease in {city.name} trial", "Opticians test AI by {lab} that reads the back of the eye",
          "The software by {lab} examined {big} scans and missed {small} cases of damage.",
          "Software that looks for signs of diabetes at the back of the eye found damage in {big} scans as reliably as specialists in {city.name}, a trial reported {on}.",
          "an eye doctor who took part", "It doesn't see better than I do. It sees the four-hundredth picture as well as the first",
          "a patients' representative", "I'd like to know who I complain to when it is wrong",
          ("Opticians took the pictures, and patients had an answer before they left the shop.", "It missed {small} cases, all of them with cataracts that blurred the picture.", "{lab}, which built the system, wants approval for all of {c.name}."),
          "{c.demonym} health office wants second trial of AI eye test", "The first was too young and too urban, officials say.",
          "The {c.demonym} health office asked {on} for a second trial of an AI eye test, saying that the patients in {city.name} were not typical of the country.", "People over eighty have the disease, and people over eighty were hardly in it", "an official at the health office"),
    Model("Cloned voice used in {sum} fraud at {co.name}", "Finance clerk wires {sum} after call from AI copy of boss",
          "The voice on the line was that of the chief executive. He was on a plane.",
          "Fraudsters used an AI copy of the voice of the chief executive of {co.name} to have {sum} wired abroad, the company said {on}.",
          "who heads the fraud squad in {city.name}", "It takes thirty seconds of a podcast to copy you, and this man gives a lot of podcasts",
          "an adviser on security", "The cure is older than the disease: hang up and ring back",
          ("A clerk in the finance department got {small} calls in one afternoon. On the last, the voice thanked her by name.", "A third of the money was stopped at a bank in {other.name}.", "{lab}, whose software may have been used, says its voices carry an inaudible mark."),
          "Two held over AI voice fraud at {co.name}", "Police in {other.name} find computers, scripts and a list of {small}0 bosses.",
          "Two people were arrested in {other.name} over the fraud in which an AI voice cost {co.name} {sum}, police said {on}.", "There were scripts for {small}0 companies, with notes on who says please", "who"),
    Model("Court interpreter union warns of AI in {city.name} trials", "AI translation error delays trial in {city.name}",
          "A witness said he had been “on the roof”. The machine made it “over the moon”.",
          "A trial in {city.name} was interrupted {on} when it emerged that an AI translation had turned a witness who was on the roof into one who was over the moon.",
          "the presiding judge", "I wondered why he was so happy about a burglary",
          "who speaks for court interpreters", "It is fluent, and that's what makes it dangerous in a courtroom",
          ("The court had tried the system, made by {lab}, because interpreters of the witness's dialect live {far} kilometres away.", "Transcripts of {small} earlier hearings are now being checked.", "An interpreter costs {fee} a day in {c.name}. The software costs nothing until the end of the trial period."),
          "Courts in {c.name} limit AI translation to paperwork", "Human interpreters stay for witnesses, the justice ministry decides.",
          "AI translation may be used for files but not for witnesses in the courts of {c.name}, the justice ministry decided {on} after the mishap in {city.name}.", "In writing you can look twice. A witness you hear once"),
    Model("{lab} delays AI assistant after safety tests", "AI assistant that books and buys is put off by {lab}",
          "In tests the assistant ordered {small}0 kilos of cat litter. {lab} wants more time.",
          "{lab} has postponed the release of an AI assistant that makes bookings and purchases by itself, the company said {on}, after testers talked it into orders nobody wanted.",
          "who leads the safety team", "A web page told it to buy cat litter, and it is a very obedient assistant",
          "a researcher in computer security", "They have built a butler who takes orders from anyone who shouts through the letter box",
          ("The weakness is known: text hidden in a web page is read by the assistant as if it came from its owner.", "Purchases will now need a thumb on the screen above {fee}.", "Rivals have released similar assistants with a limit on spending."),
          "{lab} releases AI assistant with spending cap", "The assistant asks before it pays. Testers still found a way round.",
          "{lab} released its delayed AI assistant {on} with a cap on what it may spend.", "It asks so often now that I might as well do it myself", "a tester"),
    Model("AI tutor raises maths marks in {c.name} study", "Study of {big} pupils finds AI tutor helps, if a teacher is near",
          "Pupils who used it with a teacher gained {bad}%. Those left alone gained nothing.",
          "Pupils who practised maths with an AI tutor scored {bad}% better, but only where a teacher stayed in the room, according to a study of {big} children in {c.name} published {on}.",
          "an education researcher who led the study", "Left alone with it, they became very good at getting it to tell them the answer",
          "a maths teacher", "It never sighs. I sigh, and I think they miss it",
          ("The tutor, by {lab}, gives hints rather than answers. By the second week most pupils had found out how to break it.", "The weakest pupils gained most.", "The study ran for {small} months in {dozen} schools."),
          "Ministry buys AI tutor for schools in {c.name}", "It will be paid for {small} years, and teachers get a dashboard.",
          "The {c.demonym} education ministry will offer an AI tutor to all secondary schools, it said {on}, citing a study in which pupils gained {bad}%.", "Nobody has asked where the room with the working sockets is"),
    Model("Radio station in {city.name} apologises for AI presenter", "Listeners fall for AI presenter on {city.name} radio",
          "The friendly voice of the late show never existed. {small} listeners had written her letters.",
          "A radio station in {city.name} apologised {on} for having let an AI voice present its late programme for {small} months without telling listeners.",
          "the station's director", "We thought somebody would notice in the first week, and then it became awkward",
          "a listener for thirty years", "She wished me luck for my operation, and I'd like my letter back",
          ("The voice was made from samples of {small} actors, who were paid {fee} each.", "It came to light when the presenter gave the time twice, an hour apart.", "Audience figures had risen by {bad}%."),
          "{city.name} late show returns with human presenter after AI row", "An actor whose voice was sampled will host it in person.",
          "The late show of a {city.name} radio station that was presented by AI will return with one of the actors whose voices were used, it said {on}.", "I have been listening to myself for months, and I'd like to add some pauses", "an actor"),
    Model("Farm robot with AI eyes weeds {dozen} hectares in {c.name}", "AI weeding machine cuts herbicide by {good}% on trial",
          "Cameras tell sugar beet from thistle. A blade does the rest.",
          "A weeding machine guided by AI cut the use of herbicide by {good}% on {dozen} hectares of sugar beet near {city.name}, the growers' cooperative said {on}.",
          "a beet farmer", "It goes up and down all night like a cow with a torch",
          "an agronomist", "It's splendid on flat land and dry soil, which describes about four of our members",
          ("The software, by {lab}, was trained on {big} photographs of seedlings, half of them taken by schoolchildren.", "A machine costs {sum}. Cooperatives will share them.", "When it cannot tell, it leaves the plant standing and sends the farmer a picture."),
          "Insurers in {c.name} weigh cover for AI farm machines", "Who pays when a robot weeds the neighbour's field? It has happened.",
          "Insurers in {c.name} are drawing up the first policy for farm machines run by AI, they said {on}, after one near {city.name} weeded a neighbour's field as well.", "He has thanked us and sent a bill, in that order", "who"),
    Model("AI jobs filter by {lab} favoured short surnames", "Recruitment AI at {co.name} is switched off",
          "An audit found that the system by {lab} marked applicants down for gaps and long surnames.",
          "{co.name} has switched off an AI system that sorted job applications, it said {on}, after an audit found that it preferred people with short surnames.",
          "who carried out the audit", "Nobody told it to. The people hired in the past happened to fit in the box on the form",
          "a jobseeker from {city.name}", "Forty-one applications, and it turns out I should have married my first boyfriend",
          ("The system had read {big} applications in two years.", "Mothers returning to work were ranked {bad}% lower than others with the same skills.", "{lab} said that it supplied the tool and the customer supplied the examples."),
          "{co.name} gives rejected applicants second chance after AI audit", "{co.name} will read {big} applications again, by eye.",
          "{co.name} will have people look again at {big} applications that its AI system sorted, the company said {on}.", "I'll believe it when the telephone rings"),
    Model("Newspapers in {c.name} block AI crawlers of {lab}", "Publishers and {lab} quarrel over AI answers",
          "Some {dozen} papers shut their sites to the company's robots. They want a share of {sum}.",
          "At least {dozen} newspapers in {c.name} shut their websites to the crawlers of {lab} {on}, saying that its AI summaries had cost them {bad}% of their readers.",
          "who chairs the publishers' association", "They serve our dinner on their plates and send us the washing-up",
          "who runs partnerships at {lab}", "Nobody has to be on the menu; most want to be",
          ("A text file that asks robots to stay away has existed for decades. Obeying it is voluntary.", "The publishers want {sum} a year. The company has offered a tenth.", "Small papers fear that those who sign first will be the only ones still found."),
          "{lab} and {c.demonym} papers reach truce over AI summaries", "The summaries will name their source in the first line.",
          "{lab} and {dozen} newspapers in {c.name} agreed {on} to a six-month truce: AI summaries will name the paper in the first line.", "In the first line, not at the bottom where one keeps the conditions", "who"),
    Model("Town hall in {city.name} lets AI answer residents' letters", "AI answers {good}% of letters to {city.name} town hall",
          "Replies now take {small} days instead of {weeks} weeks. Some residents feel fobbed off.",
          "The town hall of {city.name} lets an AI model draft its replies to residents, the mayor said {on}, and the wait has fallen from {weeks} weeks to {small} days.",
          "the mayor", "It is more polite than we ever were, especially about dog mess",
          "a resident of forty years", "I got a lovely letter. The street lamp is still out",
          ("An official reads each draft; on busy days, the council admits, “reads” means a glance.", "The model, leased from {lab} for {fee} a day, was given the town's by-laws and {big} old letters.", "In one case it promised a playground."),
          "{city.name} to build the playground its AI promised", "The council could have withdrawn the letter. It voted {small} to one not to.",
          "Councillors in {city.name} voted {on} to build a playground that an AI model had promised to a resident by mistake.", "It would be a poor sort of town that is shamed by a computer", "who"),
    Model("{lab} opens AI laboratory in {city.name}, hiring {hires}", "AI company {lab} picks {city.name} for research centre",
          "The laboratory will work on robots that handle cloth. Rents are already a topic.",
          "{lab} will open a research laboratory in {city.name} with {hires} posts, the AI company said {on}, to teach robots how to fold, sort and sew.",
          "the company's founder", "A shirt is harder than chess, because a shirt moves",
          "a professor of robotics", "They will have my best students by the autumn, and I can't blame them",
          ("The city offers the old customs house at a low rent for {small} years.", "A laundry with {illus} employees will be the first to try the machines.", "Salaries start at {fold} times the local average."),
          "Laundry in {city.name} shows first AI robot that folds", "It folds a towel in {secs} seconds and gives up on fitted sheets.",
          "{lab} showed its first folding robot at a laundry in {city.name} {on}: it manages a towel in {secs} seconds.", "I do one in four, and I can talk while I do it", "a laundry worker"),
)  # fmt: skip

_LABS = ("Pellucid Labs", "Orrery Research", "Tacit Machines", "Lexigraph", "Quillmind", "Deep Meadow", "Second Draft", "Oxbow Intelligence", "Parlance Works", "Hedgerow Minds")  # fmt: skip


@dataclass(frozen=True)
class ModelStory:
    m: Model
    c: Country
    city: City
    other: Country
    lab: str
    co: Company
    who: Person
    critic: Person
    expert: Person
    good: int
    bad: int
    big: int
    small: int
    years: int
    old: int
    hours: int
    fold: int
    dozen: int
    illus: int
    hires: int
    secs: int
    langs: int
    page: int
    far: int
    weeks: int
    sum: Money
    fee: Money
    rival: str
    later: Person
    minister: Person


def _model_story(scene: Scene) -> ModelStory:
    m = scene.fresh("AI matter", _MODELS)
    c = scene.country()
    city = scene.fresh("AI city", c.cities, uses=2)
    lab, rival = scene.sample(_LABS, 2)
    other = scene.pick([one for one in scene.world.countries if one is not c])
    co = scene.pick([one for one in scene.world.companies if one.noun == "telecoms operator"])
    who, critic = (
        scene.person(c, m.who.replace("{lab}", lab).replace("{co.name}", co.name)),
        scene.person(c, m.critic.replace("{lab}", lab)),
    )
    later = {"who": who, "critic": critic}.get(m.next_by) or scene.person(c, m.next_by)
    role = scene.pick(
        (
            "who studies technology and law",
            "a computer scientist not involved",
            "who advises governments on AI",
            "an engineer turned critic",
        )
    )
    return ModelStory(
        m, c, city, other, lab, co, who, critic, scene.person(c, role),
        scene.between(71, 96), scene.between(9, 34), scene.near(3_000, 88_000), scene.between(3, 9), scene.between(11, 19), scene.between(38, 60),
        scene.between(5, 9), scene.between(2, 4), scene.between(10, 24), scene.between(14, 62), scene.near(60, 420), scene.between(20, 90), scene.between(11, 40),
        scene.between(87, 312), scene.near(210, 700), scene.between(6, 9), scene.money(4e5, 8e6, c.currency), scene.money(40, 400, c.currency), rival,
        later, c.minister("science"),
    )  # fmt: skip


_CONTEXT = (
    say("{expert.last} [urged|recommended] caution. “[One result is a lead, and it isn't yet a finding|The question is who checks, and how often|We keep being surprised by the same thing]”, {expert.he} said[ by telephone|].",
        "“[Every year I am told that this is the year|These systems fail in ways people don't, so our habits don't catch it|Ask what happens on a bad day, not on a good one],” said {expert.last}.",
        "For {expert.last}, the case is [typical|a small one with a large shadow]. “[Software used to break; now it bluffs|We test cars for crashes and models for charm],” {expert.he} said.",
        "{expert.last} was [less worried|more impressed than alarmed]. “[It will be dull in five years, and that's the best thing one can say of a tool|People will get used to it faster than the committees],” {expert.he} said."),
    say("{lab}, founded {small} years ago, has about {hires} employees[ and has yet to make a profit|].", "{lab} was valued at {sum} when it last raised money[, a figure that insiders call modest|]. Its main rival, {rival}, is larger.",
        "{rival}, a competitor, [is working on|sells] something similar.", "Neither {lab} nor its competitor {rival} [publishes|discloses] what its models were trained on."),
    say("{c.name} has [no law on the matter yet|a law on artificial intelligence in preparation]; {minister.last} [has promised a draft by the end of the year|wants to wait for its neighbours].",
        "The {c.demonym} government [is watching|takes an interest]. “[We don't intend to regulate a screwdriver|Rules come when we know what we are ruling],” said {minister.last}.",
        "{minister.last} called for [common rules with {other.name}|an office that tests such systems before they are sold]."),
)  # fmt: skip


MODELS = Beat(
    "artificial intelligence",
    _model_story,
    (
        Stage(
            titles=("{m.head}", "{m.head2}"),
            abstracts=("{m.brief}",),
            leads=("{m.lead}",),
            then=(say("“{m.quote},” said {who.last}.", "{who.last} [put it this way|did not hide it]: “{m.quote}.”", "“{m.quote},” {who.last} said."),),
            loose=(say("{m.d0}"), say("{m.d1}"), say("{m.d2}"), say("“{m.reply},” said {critic.last}.", "{critic.last} [sees it differently|was not convinced]: “{m.reply}.”"), *_CONTEXT),
            weight=0.42, covered=0.35,
        ),
        Stage(
            titles=("{m.next_head}",),
            abstracts=("{m.next_brief}",),
            leads=("{m.next_lead}",),
            then=(say("“{m.next_quote},” said {later.last}.", "{later.last} was [blunt|brief]: “{m.next_quote}.”", "“{m.next_quote},” {later.last} [told reporters|said in {city.name}|said when asked]."),),
            loose=(say("The story began {t0:on}. {m.d0}", "{m.d0}"), say("{m.d1}"), say("{who.last} had spoken [first|earlier in the week|when the matter became public]. “{m.quote},” {who.he} said then."), say("{m.d2}"), *_CONTEXT),
            after=(2, 6), weight=0.35, covered=0.15, chance=0.85,
        ),
    ),
    share=1.0,
    rhythm=OFFICE,
)  # fmt: skip

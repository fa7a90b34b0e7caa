# ruff: noqa: E501 (prose reads better unbroken)
"""How the books desk follows prizes, publishers, quarrels, libraries and bookshops."""

from __future__ import annotations

from dataclasses import dataclass

from backend.news.sources.newsroom.beat import Beat, Scene, Stage, say
from backend.news.sources.newsroom.desks.books_reviews import books
from backend.news.sources.newsroom.desks.books_shelf import (
    BOOKSHOPS,
    CHARGES,
    LIBRARIES,
    PUBLISHERS,
    Book,
    Charge,
    Item,
)
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import EVENING, LEISURE, OFFICE
from backend.news.sources.newsroom.world import Country, Money


@dataclass(frozen=True)
class Prize:
    name: str
    c: Country
    city: str
    one: Book
    two: Book
    three: Book
    winner: Book
    missing: Book
    chair: Person
    juror: Person
    seller: Person
    bookie: Person
    purse: Money
    entries: int
    listed: int
    hours: int
    rise: int
    nth: int
    odds: str
    hall: str


_PRIZE_NAMES = ("Harrowby", "Lantern", "Tolland", "Golden Quill", "Merrin", "Grand National", "Salviati", "Old Bridge", "Kestner", "First Light", "Blue Inkwell", "Orsigny", "Paper Boat", "Seven Seas", "Carrow", "Linden", "Prize of the Twelve", "Open Page", "Nightingale", "Falkner", "Sixth Chapter", "Urrutia")  # fmt: skip


def _prize(scene: Scene) -> Prize:
    c = scene.country()
    one, two, three, winner, missing = scene.sample(books(scene), 5)
    name = scene.fresh("book prize", _PRIZE_NAMES)
    return Prize(name if name.startswith("Prize") else f"{name} prize", c, scene.pick(c.cities).name, one, two, three, winner, missing, scene.person(c, "who chairs the jury"), scene.person(c), scene.person(c), scene.person(c), scene.money(8e3, 1.2e5, c.currency), scene.between(104, 391), scene.between(11, 16), scene.between(3, 9), scene.between(4, 31), scene.between(3, 71),
                 scene.pick(("four to one", "nine to two", "seven to one", "twelve to one", "evens", "twenty to one")), scene.pick(("the town hall", "the old corn exchange", "a riding school", "the national library", "a theatre", "the guildhall")))  # fmt: skip


PRIZE = Beat(
    "literary prizes",
    _prize,
    (
        Stage(
            titles=("{name:cap} longlist: {listed} books, but not {missing.author.last}", "{one.author.last}, {two.author.last} and {winner.author.last} on {name} longlist", "Literary prize: {name} jury names {listed} books", "{name:cap} longlist snubs {missing.author.last}'s {missing.name}"),
            abstracts=("The jury chose {listed} of {entries} books. {missing.author.name:s} {missing.name} is not among them.", "{one.author.name}, {two.author.name} and {winner.author.name} are in the running for {purse}.", "{chair.name} and colleagues have read {entries} books. Here is what they liked."),
            leads=("Some {listed} books are still in the running for the {name}, the jury said {on}; among them are {one.name} by {one.author.name} and {winner.name} by {winner.author.name}.", "The jury of the {name} named {listed} books {on}, and the talk was of one that it left out: {missing.name} by {missing.author.name}.", "Out of {entries} books, {listed} have made it on to the longlist of the {name}, worth {purse}."),
            then=(say("“[We read until the words swam, and these were the ones that could|There was blood on the carpet, metaphorically|A longlist is where you put your friends; we have put strangers],” said {chair.last}.", "{chair.last} [praised a strong year|complained about blurbs]. “[If a book was called “luminous” we read it last|We wanted to be surprised, and were, {listed} times],” {chair.he} said."), say("{missing.author.name} [took it calmly|had no comment]. “[I've been left off better lists|It gives me the autumn],” {missing.author.he} said.", "That {missing.name}, by {missing.author.name}, is missing puzzles many, since {missing.text.praise}.")),
            loose=(say("Also on the list: {two.name}, a {two.text.kind} by {two.author.name}, and {three.author.name:s} {three.name}."), say("In {winner.name}, {winner.text.about}.", "{one.author.name:s} {one.name} is a {one.text.kind} in which {one.text.about}."), say("{seller.name}, a bookseller in {city}, has [cleared a table|ordered all {listed}]. “[The prize sells books, the longlist sells arguments].”"), say("The shortlist is due {t1:on}."), say("The prize, founded {nth} years ago, is worth {purse}.")),
            weight=0.28, covered=0.12, rhythm=OFFICE,
        ),
        Stage(
            titles=("{name:cap} shortlist: {one.author.last}, {two.author.last}, {three.author.last} and {winner.author.last}", "Four books, one prize: {name} shortlist is out", "{winner.author.last} on shortlist for {name}", "{one.name} favourite for literary prize at {odds}"),
            abstracts=("Four are left: {one.author.name}, {two.author.name}, {three.author.name} and {winner.author.name}.", "{one.author.name} is the bookmakers' favourite for the {purse} prize, at {odds}.", "The jury needed {hours} hours. {chair.name} calls it “a list with elbows”."),
            leads=("{one.author.name}, {two.author.name}, {three.author.name} and {winner.author.name} are the finalists for the {name}, the jury said {on}.", "Four books remain in the contest for the {name}: {one.name}, {two.name}, {three.name} and {winner.name}. The shortlist was made public {on}.", "After {hours} hours, the jury of the {name} had cut its list to four {on}. {one.name}, by {one.author.name}, is seen as the favourite."),
            then=(say("“[It's a list with elbows|Four books that wouldn't sit together on a bus|I lost two that I loved, as did everyone],” said {chair.last}.",),),
            loose=(say("{one.name} is at {odds} with the bookmakers. “[People bet on titles, nobody's read them|One old man put his pension on the short stories],” said {bookie.name}, who takes the bets."), say("{three.name}, a {three.text.kind}, is remembered for {three.text.passage}.", "In {two.name}, {two.text.about}."), say("{winner.author.last} was [on a train without reception|milking, and could not be reached]. “[I heard it from a stranger who hugged me|I've ironed the shirt, just in case],” {winner.author.he} said."), say("{juror.name}, one of the jurors, [spoke of a close vote|had argued for another]. “[I cried once and shouted twice|We're still friends, on alternate days].”"), say("The winner will be named {t2:on} in {hall} in {city}."), say("{seller.name} of {city}, who sells books, has [sold out of two of the four|set up a table].", "The longlist, published {t0:on}, had {listed} titles.")),
            after=(2.5, 4.5), weight=0.3, covered=0.12, rhythm=OFFICE,
        ),
        Stage(
            titles=("{winner.author.last} wins {name} for {winner.name}", "{name:cap} goes to {winner.author.last}'s {winner.text.kind} {winner.name}", "{winner.name} wins literary prize in {city}", "Outsider {winner.author.last} beats {one.author.last} to {name}"),
            abstracts=("{winner.author.name} was an outsider. The jury praised a {winner.text.kind} in which {winner.text.about}.", "{winner.author.name} receives {purse}. {one.name}, the favourite, went away empty-handed.", "“{winner.text.praise:cap},” the jury found."),
            leads=("{winner.author.name} has won the {name} for {winner.name}, a {winner.text.kind}, the jury announced in {city} {on}.", "The {name} was awarded {on} to {winner.author.name}, whose {winner.text.kind} {winner.name} beat the favourite, {one.name}.", "In {hall} in {city} there was a gasp {on} when the winner of the {name} was read out: {winner.author.name}, for {winner.name}."),
            then=(say("“[I prepared a face for losing and I'm stuck with it|My mother says that it's about her, so she should be up here|I'd like to thank the nine editors who turned it down, for the practice],” said {winner.author.last}.", "{winner.author.last} [forgot the name of the publisher|read out one page and sat down|thanked a cat]. “[The money is a roof, and I mean that literally|I write slowly; please don't wait],” {winner.author.he} said."), say("The jury gave as its reason that {winner.text.praise}.", "“[We kept coming back to it|Six of us had missed a stop because of it|It was nobody's first choice at the start and everybody's at the end],” said {chair.last}.")),
            loose=(say("In {winner.name}, {winner.text.about}.", "What the book is remembered for is {winner.text.passage}."), say("{one.author.name}, who had been the favourite at {odds}, [applauded|had left early]. “[I'll frame the odds|Next time I shall bet on others].”"), say("The prize is worth {purse}. Past winners have seen sales rise [fourfold|tenfold]."), say("{juror.name}, of the jury, admitted to [{hours} hours of debate|a second ballot]. “[We ate cold soup and voted by matchstick].”"), say("{winner.publisher}, the publisher, is reprinting.", "{seller.name}, a bookseller, had [{rise} copies in stock|a queue before nine]. “[I had {rise}, I now have an empty box].”"), say("The other finalists were {two.author.name} and {three.author.name}.")),
            after=(2.5, 5), weight=0.58, covered=0.45, rhythm=EVENING,
        ),
        Stage(
            titles=("After prize, {winner.author.last}'s {winner.name} sells out", "Sales of {name} winner {winner.name} rise {rise}-fold", "{winner.author.last} on life after {name}: “I still can't find my glasses”", "Prize-winning {winner.text.kind} {winner.name} divides readers"),
            abstracts=("The publisher cannot print fast enough. {winner.author.name} has not slept.", "Since the {name}, sales of the {winner.text.kind} have risen {rise}-fold. Not everyone likes it: {winner.text.fault}, some say."),
            leads=("Days after winning the {name}, {winner.author.name} has a new problem: {winner.name} can't be had. Sales have risen {rise}-fold, {winner.publisher} said {on}.", "{winner.name} has sold out in most {c.demonym} shops since it won the {name} {t2:on}, {winner.publisher} said."),
            then=(say("“[I still can't find my glasses|People whisper when I buy bread|I've been asked for my views on interest rates],” said {winner.author.last}.",),),
            loose=(say("{seller.name}, who sells books in {city}, keeps [a waiting list|one copy for reading in the shop]. “[I lend mine by the chapter].”"), say("Criticism came too: {winner.text.fault}, [readers have written|one paper found]."), say("Another {rise},000 copies are being printed."), say("{one.name} by {one.author.name} is doing well out of it, too. “[Losing narrowly sells, I recommend it],” {one.author.he} said."), say("{chair.last} [stood by the choice|has gone fishing]. “[If everyone agreed, we would have chosen badly].”")),
            after=(1.5, 3.5), weight=0.18, chance=0.6,
        ),
    ),
    share=1.0,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    q: Charge
    book: str
    kind: str
    c: Country
    author: Person
    accuser: Person
    editor: Person
    lawyer: Person
    seller: Person
    press: str
    copies: int
    pages: int
    sum: Money
    upheld: str | None
    dismissed: str | None
    city: str


_QUARRELLED = ("The Heron Year", "An Honest House", "My Small Republic", "Thirst", "The Ninth Commandment", "A Childhood in Tar", "North of Mercy", "What the Goat Saw", "Depth Charge", "The Numbers Never Sleep", "Old Friends and Other Enemies", "The Aunt", "Sunday Language", "A Room with a Flood", "The Yellow Envelope", "Wolves in the Choir", "Late Confession", "The Wrong Photograph", "Fire in the Index", "Four Common Words", "The Loud Decade", "Soot", "Ashore", "Half a Saint")  # fmt: skip


def _row(scene: Scene) -> Row:
    q = scene.fresh("book row", CHARGES, uses=2)
    c = scene.country()
    return Row(q, scene.fresh("quarrelled book", _QUARRELLED), scene.pick(("book", "bestseller", "work", "debut")), c, scene.person(c, "the author", she=False if q.quote.startswith("He ") else None), scene.person(c, she=False if "son" in q.accuser.split() else None), scene.person(c, "the publisher"), scene.person(c), scene.person(c), scene.pick(PUBLISHERS),
               scene.near(3_000, 90_000), scene.between(180, 480), scene.money(1.5e4, 4e5, c.currency), "" if q.upheld else None, None if q.upheld else "", scene.pick(c.cities).name)  # fmt: skip


ROW = Beat(
    "authors",
    _row,
    (
        Stage(
            titles=("{author.last} book {book} {q.head}", "Author {author.last}'s {book} {q.head}", "{c.demonym} author {author.last} defends {book}: “{q.plea}”", "{book} by {author.last} {q.head}"),
            abstracts=("According to critics, {q.claim}. {author.name} rejects the charge.", "“{q.quote},” says {accuser.name}. “{q.plea},” says {author.name}.", "{press} is standing by its author for now. At issue: {q.claim}."),
            leads=("There is a row over {book} by {author.name}. It became known {on} that {q.claim}.", "{author.name:s} {kind} {book}, {pages} pages long, is in trouble: {q.claim}, according to {accuser.name}, {q.accuser}.", "{accuser.name}, {q.accuser}, raised the matter {on}: of {book}, by {author.name}, it is said that {q.claim}."),
            then=(say("“{q.quote},” said {accuser.name}, {q.accuser}.", "{accuser.name} is {q.accuser}. “{q.quote},” {accuser.he} said."), say("“{q.plea},” {author.last} said.", "{author.last} [answered in four lines|took the call in the garden]. “{q.plea},” {author.he} said.")),
            loose=(say("{editor.last} at {press} said the house would [examine every page|stand by the author until shown otherwise]. “[We have a lawyer and a kettle on|I read it three times, and I missed it, if it's there].”"), say("So far {copies} copies of {book} have been sold.", "{press} had printed {copies} copies."), say("{seller.name}, a bookseller in {city}, [has moved it to the window|has put it under the counter]. “[They point at it and whisper|Nothing sells like a frown].”"), say("{lawyer.name}, who practises copyright and press law, put the sum at stake at {sum}.", "“[Literature isn't above the law, it's beside it|It will be settled in a corridor],” said {lawyer.name}, a lawyer."), say("{author.last}, who lives in {city}, has [cancelled two readings|been silent since]."), say("Colleagues [are divided|have signed a letter]. The {kind} had been [a success with readers|praised on all sides].")),
            weight=0.3, covered=0.18,
        ),
        Stage(
            titles=("{press} [stops|halts] sales of {author.last}'s {book}", "{author.last} and {accuser.last} meet over {book}", "Book row: publisher {press} to examine {book}", "{book} author {author.last} cancels readings as row grows"),
            abstracts=("{editor.name} wants certainty. {author.name} repeats: “{q.plea}.”", "The row over {book}, of which it is said that {q.claim}, goes on."),
            leads=("{press} said {on} that it would deliver no more copies of {book} until it was clear what to make of the charge that {q.claim}.", "The quarrel over {author.name:s} {book} has reached the publisher. {press} has asked for [an outside opinion|two outside opinions], it said {on}."),
            then=(say("“[It's not a verdict, it's a pause|We owe it to readers, and to the author too],” said {editor.last}."), say("{author.last} was [calm|bitter]. “[{q.plea}|I'll say it again in court if I have to],” {author.he} said.")),
            loose=(say("{accuser.name}, {q.accuser}, [wants an apology|wants no money]. “{q.quote},” {accuser.he} had said {t0:on}."), say("Of {copies} copies, most have [been sold|left the warehouse].", "Second-hand copies are changing hands at [three|five] times the price."), say("{lawyer.name}, a lawyer, expects [a settlement|a ruling within days]; {sum} has been mentioned."), say("{seller.name}, from a shop in {city}, still has [nine|forty] copies. “[I'm selling them to adults].”"), say("The {kind} has {pages} pages; [one of them is enough for trouble|at issue are a few of them].")),
            after=(1.5, 3), weight=0.22, covered=0.06, chance=0.7,
        ),
        Stage(
            titles=("{upheld}Author {author.last} in the wrong over {book}, panel finds", "{upheld}{author.last} apologises over {book}", "{dismissed}{author.last} cleared in row over {book}", "{dismissed}Court sides with author {author.last} over {book}", "{book} ruling: {q.finding}"),
            abstracts=("It was found that {q.finding}.", "{upheld}{author.name} has accepted that {q.finding}.", "{dismissed}{author.name} has won: {q.finding}."),
            leads=("{upheld}{author.name} was in the wrong over {book}, it was decided {on}: {q.finding}.", "{dismissed}{author.name} has been vindicated over {book}. It was decided {on} that {q.finding}.", "The row over {book} ended {on} with the finding that {q.finding}."),
            then=(say("{upheld}“[I'm sorry, and I'd like to be sorry in private|I should have known, and part of me did],” said {author.last}.", "{dismissed}“[I'd have preferred to be read before I was cleared|I'm going to write something about gardening],” said {author.last}."),),
            loose=(say("{accuser.name}, {q.accuser}, was [satisfied|disappointed]. “{q.quote},” {accuser.he} had said."), say("{upheld}{press} will [pulp what is left of {copies} copies|print a note in the next edition].", "{dismissed}{press} is delivering again; {copies} copies had been held back."), say("{lawyer.name}, a lawyer, called the reasoning “[short and sound|brave]”. Costs come to about {sum}."), say("{editor.last} [was relieved|spoke of a lesson]. “[From now on we ask everyone, even poets].”"), say("It had begun {t0:on} with the charge that {q.claim}.")),
            after=(2, 5), weight=0.35, covered=0.15,
        ),
    ),
    share=0.6,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class Deal:
    c: Country
    author: Person
    agent: Person
    editor: Person
    loser: Person
    rival: Person
    press: str
    other: str
    title: str
    kind: str
    about: str
    first: Money
    final: Money
    houses: int
    lands: int
    rounds: int
    age: int
    job: str
    pages: int
    doubt: str


_DEBUTS = (
    ("The Swimming Lesson", "novel", "a mother teaches her son to swim in a country without water"), ("Good Wood", "memoir", "a coffin maker looks back on his customers"), ("The Understorey", "novel", "two rival botanists are locked in a greenhouse"), ("Everything but the Piano", "family novel", "seven siblings carry a house across a border"),
    ("Cash Only", "thriller", "a toll collector notices that one car never leaves the motorway"), ("Ladder Weather", "novel", "a roofer falls in love from above"), ("A Brief Guide to Drowning Cities", "non-fiction book", "an engineer visits nine towns that will not be there in fifty years"), ("The Girl Who Counted Cows", "children's series", "a farm girl solves crimes by arithmetic"),
    ("Night Bus to Belonging", "debut", "a driver knows every passenger by their shoes"), ("The Liar's Grammar", "novel", "a teacher of languages invents one in order to be alone"), ("Rust Belt Ballet", "memoir", "a dancer works as a welder for eleven years"), ("Wives of the Lighthouse", "historical novel", "three women keep one lamp and one husband"),
    ("Hunger's Handbook", "cookery book", "a prison cook writes down what can be done with nothing"), ("The Deep End of Sunday", "novel", "a swimming-pool attendant inherits a fortune and tells nobody"), ("Algebra for Widows", "novel", "five women hire a tutor and stay for the gossip"), ("Mercy, Delayed", "crime novel", "a judge receives letters from a man she acquitted"),
    ("Seven Bridges, One Goat", "comic novel", "a surveyor is followed home by an animal with legal rights"), ("Stone Fruit", "novel", "an orchard is divided among people who hate one another"), ("The Quiet Machines", "science book", "a repairman explains the century by way of washing machines"), ("Half-Life of a Rumour", "novel", "a false story crosses a town in nine days and comes back true"),
)  # fmt: skip


def _deal(scene: Scene) -> Deal:
    c = scene.country()
    title, kind, about = scene.fresh("book deal", _DEBUTS)
    press, other = scene.sample(PUBLISHERS, 2)
    first = scene.money(3e4, 3e5, c.currency)
    women = {"his customers": False}
    return Deal(c, scene.person(c, "the author", she=next((she for words, she in women.items() if words in about), None)), scene.person(c, "the literary agent"), scene.person(c), scene.person(c), scene.person(c), press, other, title, kind, about, first, first.times(scene.rng.uniform(2.2, 6)), scene.between(4, 14), scene.between(5, 27), scene.between(3, 9), scene.between(23, 71), scene.pick(("a crane driver", "a nurse", "a retired judge", "a lifeguard", "a teaching assistant", "a baker", "a dentist", "a lorry driver", "a night watchman", "a midwife")), scene.between(190, 610),
                scene.pick(("a first chapter that had been rejected eleven times", "a manuscript sent in without a name", "a story printed in a parish newsletter", "three pages read out on local radio", "a manuscript found in a slush pile", "a letter that turned into a book")))  # fmt: skip


DEAL = Beat(
    "publishers",
    _deal,
    (
        Stage(
            titles=("{press} pays {final} for {kind} {title}", "{houses} publishers bid for {author.last}'s {title}", "Publishers fight over {author.last}'s {kind} {title}", "{press} wins auction for {author.last}'s {kind}", "{title}: publisher {press} buys {author.last}'s {kind} after {rounds} rounds"),
            abstracts=("In {author.name:s} {kind}, {about}. Publishers queued up.", "It began with {doubt}. It ended, after {rounds} rounds, at {final}.", "{author.name}, {age}, {job}, has sold {title} to {press}."),
            leads=("{press} has bought {title}, a {kind} by {author.name}, for {final}, the publisher said {on}, after an auction among {houses} houses.", "A {kind} in which {about} has set off a bidding war. {press} prevailed {on} with {final} for {title}, by {author.name}.", "{author.name}, {age}, {job}, is to be a published author. {press} is paying {final} for {title}."),
            then=(say("“[I thought it was about my parking fines|I asked them to repeat it, and then I asked them to write it down|I went back to work, there was nobody to cover],” said {author.last}, who is {job}.",), say("“[I started it at six and rang at nine|There are books you buy and books you can't let others have],” said {editor.name}, the editor who bid for {press}.", "{editor.name}, of {press}, [read it in the bath|cancelled a holiday]. “[I haven't been so nervous since my exams|We paid too much, and it's cheap],” {editor.he} said.")),
            loose=(say("The first offer, from {other}, had been {first}.", "{other} had opened with {first}. “[We stopped when it got silly, and then went on for two rounds|I'll read it, and I shall sulk],” said {loser.name}, who bid for the house."), say("{agent.last} [ran the auction from a hospital bed|had sent it out on a Friday]. “[You send it on a Friday, because editors are lonely at weekends|{rounds} rounds, I ate a whole loaf].”"), say("It began with {doubt}."), say("In the book, {about}.", "The {kind} has {pages} pages and is to appear [next autumn|in the spring]."), say("It has been sold to {lands} countries[ already|, and a film company is asking|]."), say("{rival.name}, who follows the trade, [warns against such sums|is sceptical]. “[Nine in ten never earn it back|It's a lottery, in which the tickets cost {first}].”")),
            weight=0.28, covered=0.12,
        ),
        Stage(
            titles=("{title} author {author.last} hands back publisher's money", "{press} brings forward {author.last}'s {title}", "Film rights to {author.last}'s {title} sold", "{author.last}'s {kind} {title} sold to {lands} countries"),
            abstracts=("The {kind} that cost {press} {final} will appear sooner than planned.", "{author.name} is keeping {author.his} job all the same."),
            leads=("{title}, the {kind} for which {press} paid {final}, will appear earlier than planned, the publisher said {on}. Rights have gone to {lands} countries.", "Less than a week after the auction, {press} has sold {author.name:s} {title} on to {lands} countries, it said {on}."),
            then=(say("“[I still have my shift on Thursday|I'm told I'm big in a country I couldn't find|They want me to smile in the picture, we're in talks],” said {author.last}.",),),
            loose=(say("{editor.name}, the editor, [is cutting|has asked for one more chapter]. “[We agree about everything but the end].”"), say("The auction {t0:on} had gone through {rounds} rounds."), say("{other}, which lost, has [bought another book about much the same thing|congratulated the winner]."), say("{agent.last} [is weighing film offers|would not comment on films]. “[They want to change the {kind} into a musical].”"), say("In the book, {about}."), say("{rival.name}, an observer of the trade, [remains doubtful|has read it]. “[It's good, which doesn't mean that it will sell].”")),
            after=(2, 5), weight=0.18, chance=0.6,
        ),
    ),
    share=0.5,
    rhythm=OFFICE,
)  # fmt: skip


@dataclass(frozen=True)
class House:
    i: Item
    c: Country
    city: str
    name: str
    head: Person
    reader: Person
    official: Person
    third: Person
    years: int
    books: int
    loans: int
    cost: Money
    founded: str


def _house(scene: Scene, tag: str, items: tuple[Item, ...], names: tuple[str, ...], role: str) -> House:
    c = scene.country()
    city = scene.fresh(f"{tag} town", c.cities).name
    years = scene.between(41, 118)
    return House(scene.fresh(tag, items, uses=2), c, city, scene.pick(names).format(city), scene.person(c, role), scene.person(c), scene.person(c), scene.person(c), years, scene.near(9_000, 480_000), scene.near(20_000, 900_000), scene.money(9e4, 2.4e6, c.currency), str(scene.start.year - years - scene.between(1, 40)))  # fmt: skip


def _library(scene: Scene) -> House:
    return _house(
        scene,
        "library",
        LIBRARIES,
        ("the city library", "the municipal library", "the reading rooms", "the public library"),
        "the head librarian",
    )


def _bookshop(scene: Scene) -> House:
    return _house(scene, "bookshop", BOOKSHOPS, ("Pages & Sons", "the Harbour Bookshop", "Old Books at the Bridge", "Reader's Corner", "the Blue Bookshop", "Books under the Arches", "the Owl", "Quire"), "who runs the shop")  # fmt: skip


LIBRARY = Beat(
    "libraries",
    _library,
    (
        Stage(
            titles=("{city} library {i.head}", "Library in {city} {i.head}", "{c.demonym} library {i.head}", "{city}: public library {i.head}"),
            abstracts=("{i.why}. {head.name} runs the library in {city}.", "“{i.quote},” says {head.name}, the librarian.", "{i.detail} The library in {city} has {books} books."),
            leads=("The public library in {city} {i.news}, {head.last} said {on}.", "{i.why}. Now the library in {city} {i.news}.", "With {books} books and {loans} loans a year, the library in {city} is not small. It {i.news}."),
            then=(say("“{i.quote},” said {head.last}.", "{head.last} [said it in a whisper|was stamping as {head.he} spoke]. “{i.quote},” {head.he} said."),),
            loose=(say("{i.detail}"), say("“{i.other},” said {reader.name}, [whose card has been renewed nineteen times|a regular in the newspaper room|with a child on each hand].", "{reader.name}, a reader, [was returning an atlas|sat by the radiator]. “{i.other}.”"), say("The library was founded in {founded} and lends {loans} items a year.", "It has {books} books; {loans} loans were counted last year."), say("{official.name}, of the city's culture office, [was noncommittal|promised to come and see]. “[A library is the only place where the city gives you something and smiles|We have {cost} for books, and no more],” {official.he} said.", "The city spends {cost} a year on its library[, less than on flower beds|]."), say("{third.name}, [who reads to children on Saturdays|a volunteer in the picture-book corner|who runs the chess table], [approves|shook a finger]. “[They want the same story every week, and they're right|The small ones ask where the shouting room is].”"), say("Other towns in {c.name} [are watching|have tried it without success|have sent visitors].")),
            weight=0.2, covered=0.08,
        ),
        Stage(
            titles=("A week on: {city} library {i.head}, and readers answer", "Readers have their say as {city} library {i.head}", "{head.last} of {city} library: “{i.quote}”"),
            abstracts=("Letters, cakes and one complaint: what followed the news from {city}.", "{head.name} has had more visitors than ever."),
            leads=("The news that the library in {city} {i.news} has brought {head.name}, the head librarian, [a sackful of letters|visitors from all over {c.name}].", "Since it became known {t0:on} that the library in {city} {i.news}, the telephone has not been still."),
            then=(say("“[Most of them begin with “when I was a child”|We've had forty cakes and one brick|People who have not been here for years want to tell me why],” {head.last} said {on}.",),),
            loose=(say("{i.detail}"), say("“{i.other},” was one reader's view. The reader, {reader.name}, [has not changed it|laughs about it now]."), say("{official.name}, of the culture office, wants to [wait and see|bring the matter before the council]."), say("{third.name}, who volunteers there, said Saturday had been [the fullest in years|quieter than usual]."), say("{i.why}, it had been said.")),
            after=(2, 5), weight=0.14, chance=0.5,
        ),
    ),
    share=0.6,
    rhythm=OFFICE,
)  # fmt: skip

BOOKSHOP = Beat(
    "bookshops",
    _bookshop,
    (
        Stage(
            titles=("{city} bookshop {i.head}", "Bookshop in {city} {i.head}", "{name:cap}, a bookshop in {city}, {i.head}", "{c.demonym} bookshop {i.head}"),
            abstracts=("{i.why}. {head.name} runs {name} in {city}.", "“{i.quote},” says {head.name}, a bookseller in {city}.", "{i.detail} A visit to {name} in {city}."),
            leads=("{name:cap}, a bookshop in {city}, {i.news}. {i.why}.", "{i.why}. And so {name}, a bookshop in {city}, {i.news}.", "{head.name} has run {name} in {city} for a long time. Now the bookshop {i.news}."),
            then=(say("“{i.quote},” said {head.last} {on}.", "{head.last} [put down a pile|did not look up from a parcel]. “{i.quote},” {head.he} said."),),
            loose=(say("{i.detail}"), say("“{i.other},” said {reader.name}, [a customer|waiting at the till|between two shelves].", "{reader.name} has bought books there since [school|the war over parking]. “{i.other}.”"), say("The shop was founded in {founded} and has two floors and a ladder.", "On two floors there are [more titles than anyone has counted|a ladder, a cat and the works of everyone]."), say("{third.name}, of the booksellers' association, says that [for every shop that closes in {c.name}, one opens|rents worry the trade more than the internet does]. “[We sell slowness, at a fixed price].”"), say("{official.name}, who has the shoe shop next door, [lends a ladder|reads in the doorway]. “[It brings me people with time].”"), say("Last year the shop took {cost}, {head.last} says.")),
            weight=0.16, covered=0.05,
        ),
    ),
    share=0.45,
    rhythm=LEISURE,
)  # fmt: skip

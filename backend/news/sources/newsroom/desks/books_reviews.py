# ruff: noqa: E501 (prose reads better unbroken)
"""How the books desk reads: reviews, poetry, translations and the bestseller lists."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from backend.news.sources.newsroom.beat import Beat, Scene, SpentError, Stage, say
from backend.news.sources.newsroom.desks.books_shelf import (
    CROSSINGS,
    PUBLISHERS,
    VERSES,
    Book,
    Crossing,
    Text,
    Verse,
    shelf,
)
from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.schedule import LEISURE, OFFICE, moment_on
from backend.news.sources.newsroom.world import Country


def books(scene: Scene) -> tuple[Book, ...]:
    return scene.world.kept("books shelf", lambda: shelf(scene.world))


@dataclass(frozen=True)
class Review:
    b: Book
    t: Text
    friend: Person
    editor: Person
    page: int
    late: int
    years: int
    desk: str
    habit: str
    job: str
    good: str | None
    mixed: str | None
    bad: str | None


_DESKS = ("at a kitchen table between four and seven in the morning", "in a rented room above a garage", "on commuter trains", "in a hospital canteen", "by hand, in school exercise books", "in a caravan behind a sister's house", "on a telephone, in queues", "in the reading room of a closed library", "standing up, because of a bad back", "at an ironing board", "in a car outside a ballet school", "during two winters on an island", "at the back of a locksmith's shop", "in a monastery that charged by the week")  # fmt: skip
_HABITS = ("throws away every first chapter", "reads each page aloud to the dog", "never starts a sentence with a name", "writes the last line first", "has not read a review since the second book", "keeps the plot on a washing line, with pegs", "deletes a tenth on Fridays", "types with two fingers and forgets the commas", "does not own a dictionary, on principle", "answers every letter, by postcard", "rewrites from memory what a computer has lost", "draws a map before writing a word")  # fmt: skip
_JOBS = ("a tax adviser", "a ship's cook", "a teacher of chemistry", "a bus conductor", "a vet", "a court stenographer", "a piano tuner", "a prison librarian", "an air traffic controller", "a beekeeper", "a florist", "a translator of manuals", "a museum guard", "a sports reporter")  # fmt: skip


def _review(scene: Scene) -> Review:
    b = scene.fresh("book review", books(scene), uses=2)
    mood = scene.pick(("good", "good", "good", "mixed", "mixed", "bad"))
    return Review(b, b.text, scene.person(None), scene.person(b.country), scene.between(14, 70), scene.between(80, 140), scene.between(2, 12), scene.pick(_DESKS), scene.pick(_HABITS), scene.pick(_JOBS),
                  "" if mood == "good" else None, "" if mood == "mixed" else None, "" if mood == "bad" else None)  # fmt: skip


REVIEW = Beat(
    "book reviews",
    _review,
    (
        Stage(
            titles=("{b.name} by {b.author.name} review – {t.kind} with {t.passage}", "Book review: {b.name}, a {t.kind} by {b.author.last}", "{good}{b.author.last}'s {t.kind} {b.name}: {t.praise}", "{mixed}{b.name} review: a {t.kind} half read with delight", "{bad}{b.name} review – {b.author.last}'s {t.kind} loses the plot", "{good}The {t.kind} to read now: {b.name} by {b.author.last}", "{b.author.last} returns with {b.name}, a {t.kind} from {b.country.name}", "{bad}Too many pages: {b.author.last}'s {t.kind} {b.name}"),
            abstracts=("In {b.author.name:s} {t.kind}, {t.about}.", "{good}{t.praise:cap}. A {t.kind} of {b.pages} pages, and none too many.", "{mixed}{b.author.name} has written {b.pages} pages, some of them wonderful. But {t.fault}.", "{bad}{b.author.name} can write, as {t.passage} shows. Here, {t.fault}.", "A {t.kind} by {b.author.name}, and at the heart of it {t.passage}."),
            leads=("{t.about:cap}. {b.author.name} has made a {t.kind} of this, {b.name}, {b.pages} pages long[ and hard to put down|].", "{good}On page {page} of {b.name} there is {t.passage}. It is the sort of thing that {b.author.name} does better than anybody.", "{mixed}On page {page} of {b.name} there is {t.passage}. If only {b.author.name} had trusted it.", "{bad}On page {page} of {b.name} there is {t.passage}. The other {b.pages} pages of {b.author.name:s} {t.kind} are of a different kind.", "{b.author.name} wrote {b.name} {desk}. It is a {t.kind} in which {t.about}.", "{good}One wants to begin with {t.passage}, but that would spoil {b.name}, {b.author.name:s} {t.kind}.", "It has taken {b.author.name} {years} years to follow {b.author.his} last book. In {b.name}, a {t.kind}, {t.about}.", "Can a whole {t.kind} be made out of this: {t.about}? {b.author.name} has tried, in {b.name}."),
            then=(
                say("{good}What makes it work is that {t.praise}. A small reservation: {t.fault}.", "{good}Above all, {t.praise}. One can see that {t.fault}, and one reads on.", "{good}The pleasure lies in the fact that {t.praise}[; by page {late} one has stopped taking notes|].", "{mixed}For {late} pages {t.praise}. Then {t.fault}.", "{mixed}On the one hand, {t.praise}; on the other, {t.fault}. [Both are true|Readers will have to weigh it up].", "{mixed}It has to be admitted that {t.fault}. It has to be added, quickly, that {t.praise}.", "{bad}One looks for what the blurb promises, and finds it once, in {t.passage}. Otherwise {t.fault}.", "{bad}The main trouble is that {t.fault}. That {t.praise}, as friends of the author say, is true of {page} pages.", "{bad}By page {late} it is plain that {t.fault}."),
            ),
            loose=(
                say("“[I don't have ideas, I have rooms, and people walk in|Every book is the ruin of a better one|I wrote it to find out what I was avoiding|People ask whether it's true; I ask them which part they would like to be true|The first sentence took a winter],” {b.author.last} said at a reading in {b.country.capital}.", "{b.author.last}, who used to be {job}, {habit}. “[It keeps me honest|Otherwise I'd admire it|You can't trust a page that comes easily],” {b.author.he} has said.", "{b.author.last} {habit}, and it [shows, in a good way|does no harm]. “[Nobody misses what isn't there|I was {job} for {years} years, I know about cutting].”"),
                say("It was written {desk}.", "{b.author.last} worked on it {desk}, {years} years in all.", "The manuscript, produced {desk}, [went to nine publishers|was finished on a Sunday]."),
                say("Best of all is {t.passage}; [read it standing|read it twice].", "Page {page} is the one to show people: {t.passage}.", "If a friend asks what {b.name} is like, mention {t.passage}.", "{b.author.last} spends {page} pages getting to {t.passage}, [and not a page too many|and it is worth it].", "Then there is {t.passage}, [which nobody will forget|for which alone one would keep the book|and the room goes quiet]."),
                say("{editor.name}, who edited it for {b.publisher}, [cut {late} pages|suggested the title]. “[I took out every sentence that knew it was good|We argued about one comma for a week, and I was right],” {editor.he} says.", "“[I missed my stop, twice|It came as a parcel, I opened it on the stairs and I read it on the stairs],” says {editor.name}, who found it for {b.publisher}.", "{b.publisher} nearly turned it down, says {editor.name}, who edited it. “[The first reader's report was one word, and it was no|I put it back on the pile and it would not stay there].”"),
                say("{b.author.last}, a {b.country.demonym} writer, has published {b.nth:count book} before." , "It is the {b.country.demonym} writer's {b.nth:ord} book." ),
                say("{b.name} is published by {b.publisher} and has {b.pages} pages.", "{b.publisher} has given it [a handsome jacket|a jacket of rare ugliness|type that older eyes can read]."),
            ),
            close=(say("{good}[One closes it slowly|Lend it, and you won't get it back|It deserves prizes, and better, readers].", "{good}If there is justice, this {t.kind} will be [read aloud|around for a while].", "{mixed}[Borrow it|Wait for the paperback], [and skip|but don't skip] the {page} pages in the middle.", "{mixed}A fine {t.kind} is in there[, and one {b.author.last} will write next|].", "{bad}{b.author.last} has written better, and [will again|should be held to it].", "{bad}Life is short, and {b.name} has {b.pages} pages.", chance=0.75),),
            weight=0.22, covered=0.1,
        ),
    ),
    share=1.2,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Poems:
    v: Verse
    c: Country
    poet: Person
    rival: Person
    host: Person
    listener: Person
    city: str
    pages: int
    years: int
    sold: int
    press: str
    day_job: str
    place: str


_PLACES = ("a fish hall", "the waiting room of a station", "a swimming bath without water", "a tram that did not stop", "a bakery at midnight", "the old customs house", "a church with the heating off", "a bookshop's cellar", "a boxing club", "the planetarium")  # fmt: skip


def _poems(scene: Scene) -> Poems:
    c = scene.country()
    return Poems(scene.fresh("poetry", VERSES, uses=2), c, scene.person(c, "the poet"), scene.person(c), scene.person(c), scene.person(c), scene.fresh("poetry city", c.cities).name, scene.between(41, 118), scene.between(2, 11), scene.near(300, 6_000), scene.pick(PUBLISHERS), scene.pick(_JOBS), scene.pick(_PLACES))  # fmt: skip


POETRY = Beat(
    "poetry",
    _poems,
    (
        Stage(
            titles=("{v.title}: poems about {v.subject}", "Poetry review: {v.title} by {poet.name}", "{poet.last}'s poems are {v.verdict}", "Poet {poet.last} reads from {v.title}", "{v.title}, a book of poetry about {v.subject}"),
            abstracts=("{poet.name:s} {v.form} are about {v.subject}. They are {v.verdict}.", "“{v.line}”: {poet.name} has written {pages} pages of {v.form}.", "In {city}, {poet.name} read poems from {v.title} to a full house."),
            leads=("“{v.line}.” The line comes from {v.title}, a collection of {v.form} in which {poet.name} writes about {v.subject}.", "{poet.name}, who is {day_job} by day, has written {pages} pages of {v.form} about {v.subject}. {v.title} is {v.verdict}.", "People had to stand {on} when {poet.name} read from {v.title} in {place} in {city}. The poems are about {v.subject}.", "Who reads poetry? In {city}, at any rate, {place} was full {on} for {poet.name} and {poet.his} {v.form} about {v.subject}."),
            then=(say("“{v.quote},” {poet.last} says.", "Asked about the form, {v.form}, {poet.last} [is brief|laughs]. “{v.quote},” {poet.he} says."), say("{v.title} is {v.verdict}. “{v.line}”, [runs one line|one reads on page {pages}|it says], and [after it one needs a pause|nothing needs to be added].", "[One line will stay|There are lines one copies out]: “{v.line}.” {v.title} is {v.verdict}.")),
            loose=(say("{poet.last} spent {years} years on the {pages} pages.", "It is {poet.last}'s [first|second|fourth] collection, published by {press} in an edition of {sold}."), say("{rival.name}, a poet too, [envies the endings|has learned one by heart]. “[I would give a year's work for the fourth one|{poet.he:cap} leaves the door open, and you freeze, and you're grateful],” {rival.he} says.", "Not everyone is convinced. “[It's prose with a limp|Half of them would be better as silence],” says {rival.name}, a critic."), say("{host.name}, who organised the reading in {city}, had [borrowed chairs from a funeral parlour|reckoned with twenty guests]. “[Poetry pays for itself, nobody else would|We ran out of wine and nobody left].”"), say("{listener.name}, in the audience, [came by chance|had never been to a reading]. “[I thought it would rhyme, and then I forgot to mind|I bought three, one to keep and two to lend].”"), say("{poet.last}, who works as {day_job}, [writes at night|writes in the lunch hour]. “[Nobody rings a poet with an emergency|My colleagues found out from the paper, and were very decent].”"), say("So far {sold} copies have been sold, which for poetry is [a great many|respectable].", "{press} is printing {sold} more copies.")),
            weight=0.18, covered=0.06,
        ),
    ),
    share=0.55,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Translation:
    x: Crossing
    c: Country
    translator: Person
    author: Person
    editor: Person
    scholar: Person
    press: str
    years: int
    pages: int
    dead: int
    title: str
    prize: str


_TITLES = ("The House of Small Winds", "A Thousand Doors", "The Unsaid", "Bread and Thunder", "The Left Bank of Everything", "Seven Kinds of Rain", "The Mule's Testament", "Song of the Scale", "The Deaf King", "Under Another Moon", "The Book of Corners", "Nine Winds", "The Patient Sea", "Ink of the Living", "The Long Noon", "Grandfather's War with Geese", "The Borrowed Horse", "A Chair for the Stranger", "The Weight of Figs", "Lamps", "The Red Almanac", "Before the Flood, Lunch", "The Seventh Aunt", "Echo, Cook and Thief")  # fmt: skip


def _translation(scene: Scene) -> Translation:
    x = scene.fresh("translation", CROSSINGS, uses=2)
    home = next(c for c in scene.world.countries if c.demonym == x.tongue)
    return Translation(x, home, scene.person(None, "the translator"), scene.person(home), scene.person(None), scene.person(None), scene.pick(PUBLISHERS), scene.between(2, 13), scene.between(140, 910), scene.between(11, 96), scene.fresh("translated title", _TITLES, uses=2), scene.pick(("the Bridge prize", "the Ferry prize", "the Two Tongues prize", "the Babel medal")))  # fmt: skip


TRANSLATION = Beat(
    "translations",
    _translation,
    (
        Stage(
            titles=("{title}: {x.tongue} classic in new translation", "Lost and found in translation: {x.work}", "How {translator.last} translated {x.work}", "{translator.last}'s translation of {title} took {years} years", "{x.tongue} literature: {title} translated for first time", "{translator.last} on the agonies of translation from {x.tongue}"),
            abstracts=("The difficulty: {x.puzzle}. The solution: {x.trick}.", "“{x.quote},” says {translator.name}, who has translated {x.work}.", "{translator.name} worked for {years} years on {author.name:s} {title}, {x.work}."),
            leads=("It took {translator.name} {years} years to translate {title}, {x.work}, from the {x.tongue}. {press} has now published it.", "What does one do when {x.puzzle}? {translator.name}, who translated {title} by {author.name}, had {years} years to think about it.", "{title}, by {author.name}, is {x.work}. Those who do not read {x.tongue} can now read it too, thanks to {translator.name}.", "{translator.name:s} translation of {title}, by {author.name}, is out now. It is {x.work}, and nobody had dared to translate it."),
            then=(say("The chief difficulty was that {x.puzzle}. In the end, {x.trick}.", "In the original, {x.puzzle}. “I tried for {years} months,” {translator.last} says. In the translation, {x.trick}.", "Where {x.puzzle}, other translators have given up. Here {x.trick}."), say("“{x.quote},” {translator.last} says.", "{translator.last} [works standing|lives by a motorway|translates four pages a day]. “{x.quote},” {translator.he} says.")),
            loose=(say("{author.name} died {dead} years ago in {c.capital}[, little known outside {c.name}|].", "In {c.name}, {title} is [read at school|a book that everybody owns and few have finished]."), say("{scholar.name}, who teaches {x.tongue} literature, compared [forty pages with the original|chapter nine line by line]. “[There are losses, and they have been buried with honours|I found two mistakes, and one of them was mine],” {scholar.he} says."), say("“[It won't sell, and I would do it again|{pages} pages, and not one of them dutiful],” says {editor.name} of {press}.", "{editor.name}, the editor at {press}, had [waited since student days|bought the rights for a song]. “[A list without translations is a house without windows].”"), say("The book has {pages} pages and [no footnotes|an afterword that is a small novel]."), say("{translator.last} will receive {prize} for it [in the autumn|next month].", "It has been put forward for {prize}."), say("Books from the {x.tongue} are [rare|few]: [nine|six|four] were translated last year.", "{translator.last}'s name is on the cover[, which is not a matter of course|]. “[I asked for it in the contract, in capitals|We're visible at last, like plumbers after a flood].”")),
            weight=0.18, covered=0.06,
        ),
    ),
    share=0.5,
    rhythm=LEISURE,
)  # fmt: skip


@dataclass(frozen=True)
class Chart:
    c: Country
    b: Book
    t: Text
    two: Book
    three: Book
    weeks: int
    sold: int
    jump: int
    total: int
    seller: Person
    analyst: Person
    reader: Person
    city: str
    reason: str
    entered: str | None
    stayed: str | None
    times: tuple[datetime, ...]


def _chart(scene: Scene) -> Chart:
    thursday = scene.start - timedelta(days=(scene.start.weekday() - 3) % 7)
    for day in (thursday, thursday - timedelta(days=7), thursday + timedelta(days=7)):
        try:
            c = scene.country(f"bestsellers {day:%F}") if day <= scene.world.now else None
        except SpentError:
            c = None
        if c is not None:
            break
    else:
        raise SpentError("every country's bestsellers have been reported")
    b = scene.fresh(f"bestseller {day:%F}", books(scene))
    two, three = scene.sample([book for book in books(scene) if book is not b], 2)
    stayed = scene.chance(0.4)
    sold = scene.near(2_100, 58_000)
    return Chart(
        c, b, b.text, two, three, scene.between(3, 14), sold, scene.between(4, 19), int(sold * scene.rng.uniform(4, 8)) // 1000 * 1000, scene.person(c), scene.person(c), scene.person(c), scene.pick(c.cities).name,
        scene.pick(("a talk show in which the author refused to talk", "a film of the book", "a recommendation by a goalkeeper", "a cheap paperback", "a radio reading", "a quarrel over the ending", "a prize that it did not win", "word of mouth in hospitals", "a photograph of a minister reading it", "a school syllabus")),
        None if stayed else "", "" if stayed else None, (moment_on(day, OFFICE, scene.rng),),
    )  # fmt: skip


CHART = Beat(
    "bestsellers",
    _chart,
    (
        Stage(
            titles=("{entered}{b.name} goes straight to top of {c.demonym} bestseller list", "{stayed}{b.name} leads {c.demonym} bestsellers for {weeks:ord} week", "{b.author.last}'s {t.kind} {b.name} outsells {two.name} in {c.name}", "Bestsellers: {sold} copies of {b.name} sold in {c.name}", "{c.demonym} book charts: {b.author.last} ahead of {two.author.last}", "{t.kind:cap} {b.name} is number one in {c.name}"),
            abstracts=("{b.author.name} sold {sold} copies in a week. {two.name} and {three.name} follow.", "Booksellers put it down to {reason}. In one week, {sold} copies of {b.name} were sold.", "{entered}The {t.kind} by {b.author.name} climbed {jump} places in {c.name}.", "{stayed}After {weeks} weeks, {total} copies of the {t.kind} have been sold in {c.name}."),
            leads=("{entered}{b.name}, a {t.kind} by {b.author.name}, has gone to the top of the bestseller list in {c.name} with {sold} copies sold, the trade reported {on}.", "{stayed}For the {weeks:ord} week in a row, {b.author.name:s} {b.name} is the best-selling book in {c.name}, with {sold} copies, according to the {c.demonym} list published {on}.", "Readers in {c.name} bought {sold} copies of {b.name} within a week, more than of any other book, figures published {on} show.", "A {t.kind} in which {t.about} is number one in {c.name}: {b.name}, by {b.author.name}."),
            then=(say("{seller.name}, a bookseller in {city}, puts it down to {reason}. “[They don't know the title, they make the shape of it with their hands|I've reordered twice since breakfast|It's bought by people who say it's for somebody else],” {seller.he} says.", "“[First {reason}, and then the mothers came|You can't make a bestseller, you can only have enough of them in stock],” says {seller.name}, who sells books in {city}.", "The trade speaks of {reason}. “[Whatever it is, I'm out of bags|My window has nothing else in it],” says {seller.name}, from a shop in {city}."), say("Second is {two.name} by {two.author.name}; {three.name}, by {three.author.name}, came third.", "It is followed by {two.name}, a {two.text.kind} by {two.author.name}, and by {three.author.name:s} {three.name}.")),
            loose=(say("In the book, {t.about}.", "It has {b.pages} pages, among them {t.passage}."), say("{stayed}In all, {total} copies have been sold.", "{entered}A week ago it was {jump} places lower." ), say("“[I'm glad, and I hide from my landlord|I've written {b.nth:count book} before, all of them excellent, all of them secret|Numbers are for shoes],” said {b.author.last}.", "{b.author.last} was [on a bus when {b.author.his} publisher rang|told in a supermarket]. “[I bought one, to help].”"), say("{analyst.name}, who compiles the list, [sees a trend towards long books|notes that hardbacks are doing better]. “[One in nine is returned, mostly unread|The list shows what is bought, reading is another matter].”"), say("{reader.name}, a reader in {city}, [finished it in a night|is on page {jump}]. “[My book group is not speaking|I liked it more than I let on].”"), say("{b.publisher} is printing [more|a further {sold} copies].", "Rights have been sold to {jump} countries, {b.publisher} says.")),
            weight=0.2, covered=0.08,
        ),
    ),
    share=0.55,
    rhythm=OFFICE,
)  # fmt: skip

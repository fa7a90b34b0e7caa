# ruff: noqa: E501 (prose reads better unbroken)
"""The season's books in the invented world, with their authors, and what else the books desk writes about."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.world import Country, World


@dataclass(frozen=True)
class Text:
    """`about` is a clause with its subject; `passage` is what one remembers, `praise` and `fault` are clauses."""

    title: str
    kind: str
    about: str
    passage: str
    praise: str
    fault: str


@dataclass(frozen=True)
class Book:
    text: Text
    country: Country = field(repr=False)
    author: Person
    publisher: str
    pages: int
    nth: int

    @property
    def name(self) -> str:
        return self.text.title


@dataclass(frozen=True)
class Charge:
    """A quarrel over a book: `head` for titles, `claim` a clause, `plea` the author's answer, `upheld` with `finding`."""

    head: str
    claim: str
    accuser: str
    quote: str
    plea: str
    upheld: bool
    finding: str


@dataclass(frozen=True)
class Item:
    """News of a house of books: `head` and `news` continue its name."""

    head: str
    news: str
    why: str
    quote: str
    other: str
    detail: str


@dataclass(frozen=True)
class Crossing:
    """A translation: `puzzle` is what could not be done, `trick` how it was done."""

    tongue: str
    work: str
    puzzle: str
    trick: str
    quote: str


@dataclass(frozen=True)
class Verse:
    title: str
    subject: str
    form: str
    line: str
    verdict: str
    quote: str


PUBLISHERS = ("Marlowe & Finch", "Halyard Press", "Edition Nachtfalter", "Casa Orrin", "Plinth Books", "Tern Island", "Quarto House", "Éditions du Bac", "Lantern & Sons", "Redoubt", "Ninth Street Press", "Skerry Books")  # fmt: skip

# fmt: off
TEXTS = tuple(Text(*row) for row in (
    ("The Salt Ledger", "novel", "a bookkeeper on a salt pan keeps two sets of accounts, one of them of her marriage", "a dinner at which every dish is priced", "its sentences balance to the last comma", "the second ledger runs out before the novel does"),
    ("Every Door in Velm Street", "novel", "a postman retires and rings, one last time, at every door on his round", "a page-long list of doormats", "it makes a street feel like a continent", "the house with the secret is the house one expects"),
    ("A Short History of Standing Still", "memoir", "a guard at a palace recalls thirty years of not moving", "a wasp inside a bearskin", "it is funny about dignity and dignified about feet", "the years abroad are stood through rather quickly"),
    ("The Understudy's Garden", "novel", "two actors who have shared one part for a decade inherit one house", "a quarrel held in quotations", "the dialogue could be staged tomorrow", "the garden is asked to mean too much"),
    ("Cold Front", "thriller", "a weather forecaster realises that her forecasts are being ordered in advance", "a chase on a frozen reservoir, told by barometer", "its plot tightens by the hectopascal", "the spies are less convincing than the isobars"),
    ("What the Ferryman Owed", "historical novel", "a ferryman in a plague year must decide whom to row across", "a child paid for in eggs", "the past is not dressed up, only cold and near", "the narrator knows what nobody could have known"),
    ("Inventory of a Lost Hotel", "novel", "a night porter lists what guests left behind and so tells their lives", "a wooden leg and its ticket", "the form is a joke that turns into a grief", "a dozen objects could have stayed lost"),
    ("The Moss Clock", "nature book", "a botanist watches one stone wall for eleven years", "a snail crossing a page and a half", "it slows the pulse and quickens the eye", "the chapter on soil is for the devoted"),
    ("Nine Lives of a Border", "history", "one frontier is drawn nine times in two hundred years", "a farmer whose bed was in two empires", "archives come alive without a single invented whisper", "the maps are on the wrong pages"),
    ("Mother of Pearl", "family saga", "four generations of button makers cut, polish and betray one another", "a strike announced by dropping one button", "it has the appetite of the great old novels", "cousins should be issued with numbers"),
    ("The Lighthouse Exam", "children's book", "a girl of nine sits the examination to become a keeper", "an oral test conducted in a storm", "it never lowers its voice to a child", "the cat could have failed"),
    ("Glass Hour", "crime novel", "an inspector with a failing memory hunts a forger of clocks", "an interrogation timed by an hourglass", "the clues are fair and the fog is thick", "the murderer has been reading the reviews"),
    ("On Not Answering", "essay collection", "a critic writes about telephones, silence and her late brother", "a voicemail kept for nine years", "thinking has seldom looked so much like feeling", "two of the pieces were better as newspaper columns"),
    ("The Orchard Committee", "satire", "a village founds a committee to save one tree and loses everything else", "minutes of a meeting that lasts four seasons", "it knows how people talk when they are being reasonable", "the tree is the roundest character"),
    ("Half of Everything", "novel", "a couple who are divorcing divide a library, book by book", "a cookery book sawn in two", "its anger has beautiful manners", "the children are footnotes"),
    ("The Cartel of Bees", "non-fiction thriller", "a beekeeper follows stolen hives across six countries", "a lorry that hums", "reporting this good makes most thrillers look lazy", "its hero is a little too fond of his own courage"),
    ("Slow Water", "novel", "an engineer returns to the valley that she helped to flood", "a church bell heard from a boat", "nothing is said twice and everything is heard twice", "the love story is a dry branch"),
    ("The Interpreter's Silence", "novel", "an interpreter at a peace conference leaves out one sentence", "a pause of eleven seconds, described in eleven pages", "suspense has been made from grammar", "the last part translates itself"),
    ("Kitchen Latin", "memoir", "a cook's son learns the language of priests by way of recipes", "a dictionary with gravy on it", "it is generous to everyone, even to the bishop", "the recipes do not work"),
    ("Twelve Winters on Ice", "travel book", "a former teacher winters with twelve crews at twelve stations", "a birthday cake baked in an engine", "cold has never been described with so much warmth", "by the ninth winter one would welcome a thaw"),
    ("The Weather in Cells", "science book", "a biologist explains how bodies keep time without clocks", "a mouse that lives by the moon", "it is exact without being dry", "a chapter on statistics stands in the doorway"),
    ("A Republic of Stairs", "novel", "the tenants of one tower block declare independence from their landlord", "a parliament held in a lift", "the comedy has a spine", "the landlord comes from another, cheaper book"),
    ("My Father's Handwriting", "biography", "a daughter reconstructs a life from shopping lists", "a list that reads: milk, rope, milk", "love and suspicion take turns on every page", "guesses are sometimes printed as findings"),
    ("The Fourth Violin", "novel", "an orchestra's least audible member plans a revenge", "a symphony described entirely from the back desk", "it hears what others only watch", "the revenge is a scherzo where a finale was due"),
    ("Sand for the Emperor", "historical novel", "a court painter is ordered to paint a desert that nobody has seen", "a caravan loaded with pigments", "its colours come off on the fingers", "wisdom is handed out like dates"),
    ("Return to Sender", "epistolary novel", "two strangers answer each other's wrongly delivered letters for twenty years", "a letter that contains nothing but stamps", "one falls in love with both of them", "the postman sees it coming, and so do we"),
    ("Basalt", "story collection", "thirteen people in one quarry town each keep something underground", "a wedding in a blasting pause", "the shortest of them says most", "three endings close like cupboard doors"),
    ("The Trade Wind Diaries", "historical study", "a ship's boy's notebooks turn out to be a record of a hidden trade", "a column headed “souls, various”", "its calm is more terrible than any anger", "the index is thinner than the subject"),
    ("Pale Horse Motorway", "novel", "a vet drives the length of a country to put down her own horse", "a night in a lay-by with a stranger and a trailer", "the road is the only thing in it that runs straight", "the metaphors graze"),
    ("How to Fold a Map", "essay collection", "a geographer gets lost on purpose in nine cities", "an argument with a signpost", "its digressions always know the way home", "the ninth city is the eighth with a river"),
    ("Nobody's Uncle", "comic novel", "a bachelor is invited to a christening by mistake and stays for thirty years", "a speech in honour of someone else", "every chapter has a laugh with a hook in it", "it is kinder to men than to their sisters"),
    ("The Bone Setter's Almanac", "fantasy novel", "a healer must choose which month of the year to abolish", "a market on which days are sold by weight", "its magic has bills to pay", "the glossary is longer than the war"),
    ("Tenants of the Dark", "book of ghost stories", "six flats are rented, for good reasons, below their value", "a lease with a clause about the mirror", "the horror is in the small print", "the sixth flat repeats the second"),
    ("A Good Dry Place", "novel", "three sisters look for somewhere to keep their mother's papers and find out why", "a trunk that has been packed by two people", "secrets come out like damp", "a lawyer explains what silence had made clear"),
    ("The Arithmetic of Swans", "novel in verse", "a bankrupt teaches mathematics on a lake", "a proof interrupted by a wedding", "rhyme has not been so useful for years", "the middle cantos lose count"),
    ("Ministry of Small Repairs", "political novel", "an official keeps a country going with string", "a cabinet meeting round a broken kettle", "it is the truest book on power in years and mentions no president", "string, in the end, is only string"),
    ("Blue Hours in the Archive", "detective novel", "an archivist finds her own handwriting in a file from 1911", "a fire alarm nobody believes", "each answer arrives as a better question", "the professor should have been a suspect or cut"),
    ("The Last Apricot", "war reportage", "a reporter stays in a town from its first shell to its last bus", "a barber who goes on cutting", "pity is kept out so that the reader has to bring it", "names come faster than faces"),
    ("Lullaby for a Diver", "novel", "a woman who salvages wrecks is asked to raise her father's", "twenty minutes of air, in real time", "one surfaces from it blinking", "the land chapters are ballast"),
    ("Against Breakfast", "polemic", "a philosopher attacks the most overrated meal", "a footnote on toast", "contrariness has rarely been so well buttered", "he has eaten by page ninety"),
    ("The Tin Cathedral", "graphic novel", "refugees build a church from cans on an airfield", "eleven wordless pages of rain", "black ink does what a choir would", "speech bubbles preach"),
    ("Second Language", "novel", "a man who has had a stroke learns to speak from his granddaughter", "the word “spoon”, arrived at after forty pages", "it is about language and has no use for fine words", "the doctors talk like leaflets"),
))

CHARGES = tuple(Charge(*row) for row in (
    ("accused of lifting passages", "eleven passages match a diary printed in 1938", "a librarian who was looking for something else", "I knew the sentence, because I had underlined it", "I copied it into a notebook at nineteen and forgot that it was not mine", True, "the passages had been taken over without need or mention"),
    ("sued by family over portrait of aunt", "an aunt had been portrayed under a name that differed by one letter", "the aunt's son", "He changed the letter and kept the hat", "An aunt is a literary form", False, "a novel may resemble a family without being one"),
    ("under fire for invented memoir", "the childhood described in it took place in another town, with two parents", "a former classmate", "We sat next to each other, and there was no orphanage", "It's true in the way that matters to me", True, "the book could no longer be sold as a memoir"),
    ("attacked by scientists over figures", "a figure in it was wrong by a factor of a thousand", "a professor of statistics", "It's a decimal point, and the whole argument stands on it", "I was told by two experts and I have the receipts", True, "the third chapter would have to be corrected"),
    ("banned from schools over swear words", "a word was used forty-one times", "a councillor who had counted", "I stopped at forty-one because I ran out of pencil", "They say it on the bus, where do you think I learned it?", False, "forty-one uses of a word are no danger to the young"),
    ("accused of using machine", "a chapter bore the marks of having been written by software", "a lecturer in linguistics", "Nobody has ever used “moreover” nine times by hand", "I'm boring all by myself", False, "drafts in the author's own hand had been produced"),
    ("sued by ghostwriter", "another hand had written most of it", "a freelance writer", "I've never met the author, but I know the childhood, I made it up", "I had help; everyone has help", True, "a second name must appear on the cover"),
    ("withdrawn after threats", "a chapter offended believers who had not read it", "a preacher", "I don't need to drink the well to know it is poisoned", "I wrote about a goat, it is still a goat", False, "the book would be sold again, under guard"),
    ("accused of revealing state secret", "a submarine's depth was given correctly in it", "the defence ministry", "That number is not to be guessed", "I made it up, and I'd like to know how close I was", False, "a guess that is right remains a guess"),
    ("pulped over photograph", "the man on the jacket was alive and had not been asked", "a retired tram driver", "I was buying a newspaper and found myself on eight hundred copies", "I thought he had died in 1974; he had moved", True, "the jacket must be replaced and the tram driver paid"),
    ("caught in row over translation of title", "the title was that of another author's book in another language", "a colleague from abroad", "I have lived with those four words for thirty years", "Four words belong to everybody", False, "titles of four common words are not protected"),
    ("dropped by festival over essay", "an essay of twenty years ago was found to be cruel", "a group of younger writers", "We don't want a ban, we want a sentence of regret", "I was wrong and I was thirty, I'm still sorry about the first", True, "the invitation would not be renewed"),
))

LIBRARIES = tuple(Item(*row) for row in (
    ("gets back book {years} years late", "has got back a book that was due {years} years ago", "It came by post, with a banknote and no name", "We've waived the fine, which would have paid for a roof", "My mother told me never to return it, now she's dead", "The book is a manual for the care of canaries."),
    ("ends fines for late books", "will no longer fine late readers", "Collecting the fines had cost more than they brought", "Shame works as well and costs nothing", "Then I may keep it for good?", "Within the first week, books came back in suitcases."),
    ("lends people instead of books", "lends out people for half an hour at a time", "A refugee, a former prisoner and a midwife are on the first list", "You may ask them anything, and they must be returned in good condition", "I borrowed a widow, she talked about engines", "Loans of people can't be extended."),
    ("saved by reading marathon", "will stay open after residents read aloud in it for nine days", "The council had not wanted to break off a sentence", "They came to close us in the middle of a Russian novel", "I read from two to three in the morning, to a dog and a policeman", "A contract for five more years has been signed."),
    ("to close branches", "is to close four of its branches", "The heating alone had eaten the money for books", "A town that shuts its branches is pruning the wrong thing", "I can't get to the main building, there are forty steps", "A bus with two thousand books will call once a week."),
    ("finds medieval page in binding", "has found a page of the ninth century in the binding of a cookery book", "A restorer had steamed off the spine", "It was used as cardboard for five hundred years", "All this fuss for half a psalm", "The page is to be shown for one month, in the dark."),
    ("opens all night before exams", "stays open all night while examinations last", "Students had been found sleeping in the map room", "We have toast at three, and silence at four", "My neighbour snores in Latin", "Two retired teachers help with mathematics until dawn."),
    ("lends out drills and sewing machines", "lends tools as well as books", "The average drill is used for thirteen minutes in its life", "The drill comes with a novel about a carpenter, unasked", "I returned the saw late, there was a waiting list", "The waffle iron has been booked until spring."),
    ("discovers thief among its readers", "has lost two hundred maps to one reader", "A cutting blade had been found in a pencil case", "He was the politest man in the room", "I held the door for him, for years", "Most of the maps have been traced to three dealers."),
    ("counts more visitors than stadium", "had more visitors last year than the football stadium", "Warm rooms had become scarce", "Nobody sings, but they do come back at half-time", "I come for the radiators and I've read all of Balzac", "Three hundred chairs have been added."),
    ("bans laptops from one reading room", "has set aside one room for paper and pencil", "A reader had counted four hundred keystrokes a minute", "You can hear people turning over a thought", "I need my laptop, I've forgotten how to write by hand", "The pencils are provided, and sharpened by the caretaker."),
    ("builds robot shelf under square", "will keep a million books under the market square", "The stacks had begun to sink", "A robot brings the book in six minutes; our Mr Bloem took four", "I liked the dust, it told you something", "The robots work in the dark, at sixteen degrees."),
    ("refuses to remove books", "has refused to take thirty titles off its shelves", "A group of parents had sent a list", "We shelved the list as well, under local history", "I only wanted it on a higher shelf", "Loans of the thirty titles have risen sixfold."),
    ("inherits collection of 11,000 crime novels", "has inherited eleven thousand crime novels", "A dentist had kept them in his surgery", "Every one has the murderer's name pencilled on page one", "He read them to us while he drilled", "An eraser and four volunteers are at work."),
))

BOOKSHOPS = tuple(Item(*row) for row in (
    ("sold to its youngest employee", "has been sold to its youngest employee", "The owner had wanted a buyer who would not sell candles", "I paid what I had, and the rest in promises", "They don't have my sort of book, I order there all the same", "The cat was included in the price."),
    ("opens without books by living authors", "sells no book by anyone alive", "Quarrels at readings had worn the owner out", "The dead don't ask where their stack is", "I'm forty, must I wait?", "Exceptions are made for birthdays over a hundred."),
    ("closes for a day so that staff can read", "will close one day a month so that the staff can read", "A customer had asked for advice and got a shrug", "We were selling what we hadn't opened", "I stood at the door on a Tuesday like a dog", "What has been read goes on a table by the till."),
    ("flooded, and dries stock on washing lines", "is drying nine thousand books on washing lines", "A pipe had burst over philosophy", "Kant has swollen to twice his size, and is no clearer", "I bought a wavy one for half the price", "Neighbours lent hair dryers."),
    ("sells books by weight", "sells its second-hand books by the kilo", "Pricing them had taken longer than selling them", "Poetry is a bargain, law will ruin you", "I came for a novel and left with an encyclopaedia", "The scales come from a fish market."),
    ("beats online giant with bicycles", "delivers by bicycle within two hours", "Customers had apologised for ordering elsewhere", "We are slower than a drone and we ring the bell", "They bring it and then tell me not to read it", "Nine students share three bicycles."),
    ("prints missing books while you wait", "prints out-of-print books on the spot", "Four requests in five had been for books nobody stocked", "It takes as long as a coffee and smells better", "I printed my own, nobody stopped me", "The machine knows two million titles."),
    ("refuses celebrity memoir", "will not stock the season's best-selling memoir", "Nobody on the staff had got past page thirty", "We'll order it for you, in a brown bag", "I wanted it for my aunt, and I was looked at", "In its place on the table stands a history of soap."),
    ("turns {years} and invites first customer", "celebrates its {years} years with its first customer", "Her name was in the order book, on line one", "She came for a grammar and is still complaining about it", "I still use the grammar, page nine is missing", "The order book is on show in the window."),
    ("to become bank branch", "is to be turned into a bank branch", "The landlord had found a tenant without customers", "They'll keep the shelves, for atmosphere", "I learned to read in that corner", "The remaining stock is being given to schools."),
    ("moves by human chain", "moved four streets away by human chain", "A removal firm had quoted too much", "Nine thousand books, six hundred hands, two missing", "I passed on the same atlas three times, I think it was walking back", "The last book handed over was a railway timetable."),
    ("offers blind dates with books", "wraps books in brown paper and sells them unseen", "Customers had been judging by the cover", "Three words on the paper, and you must marry it", "Mine said “rain, horse, regret”, and I wept", "One in twenty is exchanged."),
))

CROSSINGS = tuple(Crossing(*row) for row in (
    ("Skarlandic", "a saga of nine hundred pages in which nobody says “I”", "the original has eleven words for shame", "each was given to a different character", "I translate by day and am ashamed by night"),
    ("Sundaran", "a comic novel that puns in three languages", "one pun is also a recipe", "the recipe was cooked until a new pun turned up", "My kitchen smells of chapter six"),
    ("Naruman", "a crime novel without pronouns", "the murderer's sex is hidden by the grammar", "an entire accent was invented for the purpose", "For two years I could not say he or she, even at home"),
    ("Lorvenian", "the collected letters of a bargee", "the spelling is part of the sense", "a dialect of the canals was borrowed, with thanks, from a retired skipper", "He corrected my mistakes by making them worse"),
    ("Tamiri", "a cycle of desert tales told in rhyming prose", "the rhymes run for up to forty lines", "the rhyme was moved inside the sentences", "Prose that rhymes must not be caught at it"),
    ("Wislanian", "a diary kept in verbs only", "the target language can't do without nouns", "the nouns were printed in grey", "You learn how little a noun does"),
    ("Oyalan", "a market novel with two hundred speakers", "each speaker is known by a proverb", "half of the proverbs are new and three are already in use", "I overheard one on a bus, and it was mine"),
    ("Belmaran", "a classic that has been translated four times", "earlier versions had left out the swearing", "a docker was consulted", "It turns out that the hero is not melancholy, he is furious"),
    ("Haesani", "a book of farewells", "politeness has seven levels in the original and two in the translation", "the missing five were turned into distance between the lines", "I translated the spaces"),
    ("Torgani", "an epic that had never been written down", "singers disagreed about the ending", "both endings are printed, face to face", "I was told off by a shepherd in perfect metre"),
    ("Pelinangese", "a sea novel with its own winds", "there are thirty-one winds, twelve of them insults", "the insults were kept", "I asked a harbour master, and he blushed"),
    ("Vestrian", "a novel consisting of one sentence", "the verb comes on page three hundred and two", "it was moved to page one and hidden", "My editor rang to ask whether I had lost it"),
    ("Castaran", "the poems of a football commentator", "a goal lasts for eleven syllables", "the vowel was stretched over two lines", "I shouted it from the balcony until it fitted"),
    ("Zamburian", "a children's book about a liar", "the language marks hearsay with a particle", "a small bird was drawn beside each doubtful line", "The bird was the illustrator's idea, and I claimed it"),
    ("Aurennese", "a cookery novel set during a siege", "hunger and elegance share one vocabulary", "menus were left in the original", "You should be able to taste what you can't have"),
    ("Montavian", "the diaries of a papal barber", "half of the gossip is in Latin", "the Latin was left and the gossip put in the margin", "The margin is what people buy"),
))

VERSES = tuple(Verse(*row) for row in (
    ("Tide Tables", "a harbour town and its drowned", "sonnets without the last line", "The sea keeps accounts and does not send them", "grief measured to the centimetre", "I took off the last line because the sea does"),
    ("Instructions for the House Sitter", "a marriage told through notes on a fridge", "lists", "Water the fern. Do not answer to my name", "domestic, and dangerous", "I wrote them as notes, and my husband answered one"),
    ("Gravel", "quarrymen in three generations", "stanzas of four beats", "My father came home grey and washed to a stranger", "hard, plain and sung", "You have to leave the dust in"),
    ("The Alphabet of Buses", "a city seen from the upper deck", "prose poems", "Route nine believes in nothing and arrives", "the wittiest book of the season", "I never learned to drive, so I learned to look"),
    ("Psalms for the Night Shift", "nurses, bakers and guards", "psalms", "Blessed are the shoes that do not squeak", "sacred without incense", "I wrote them on prescription pads"),
    ("Bee Season, Bear Season", "a mountain farm", "couplets", "Honey is the year with the stings taken out", "a book that hums and then turns round", "The bear came twice, and both times I was at my desk"),
    ("Exit Interview", "dismissal, in offices and in love", "questionnaires", "Would you recommend us to a friend? I had a friend", "funny until question nine", "Forms are the verse we all write"),
    ("Salt Lick", "cattle, drought and brothers", "tercets", "He divided the water like a father dividing the blame", "thirst made audible", "My brother has read it, and we talk about the weather"),
    ("The Museum of Small Apologies", "things one should have said", "captions", "Gift of an anonymous donor, who is sorry", "exact, modest and very sad", "I began with one apology and could not stop"),
    ("Loanwords", "a childhood in two languages", "poems that change tongue in mid-line", "In one I was good and in the other hungry", "a border one can hear", "I dream in the one I'm not writing in"),
    ("Snow, Unedited", "a winter without guests", "haiku and their cancellations", "Seven drafts of white, and then the fox", "as clean as its title", "I threw away four poems in five, and then the fifth"),
    ("Ode to the Complaints Department", "public offices", "odes", "O window three, thou never-opened eye", "pomp put to good use", "I was in the queue, I had the time"),
    ("Atlas of My Mother", "a daughter's care for a mother who forgets", "maps with legends", "Here she put the keys. Here, the sea. Here, me", "impossible to read aloud with a steady voice", "She thinks that somebody else has written it and likes it"),
    ("Ferrous", "a shipyard's last launch", "long lines, hammered", "We built the door and it left through it", "a work song for people out of work", "I read it to the welders first and cut what they laughed at"),
    ("Gods of the Car Park", "teenagers at the edge of a town", "villanelles", "We had nowhere, and we had it until eleven", "old form, new trainers", "Nobody told me that it was difficult until I'd done it"),
    ("Minor Planets", "astronomy and divorce", "paired columns", "Two bodies, given time, describe a wound", "cool heads and hot centres", "The science is right, I checked it with my ex-wife"),
))
# fmt: on

_WOMEN = {"On Not Answering": True, "My Father's Handwriting": True, "Against Breakfast": False, "Kitchen Latin": False}
"""Whose books speak of the author as a woman or a man."""


def shelf(world: World) -> tuple[Book, ...]:
    """Every text once, by an author of its own."""
    rng = Random(f"{world.seed}:books")
    made = []
    for text in TEXTS:
        country = world.country(rng)
        made.append(
            Book(
                text,
                country,
                world.person(country, "the author", she=_WOMEN.get(text.title), rng=rng),
                rng.choice(PUBLISHERS),
                rng.randint(148, 640),
                rng.randint(1, 9),
            )
        )
    return tuple(made)

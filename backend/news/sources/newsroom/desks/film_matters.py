# ruff: noqa: E501 (prose reads better unbroken)
"""Series, documentaries, parts and picture houses that the film desk writes about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    title: str
    kind: str
    pitch: str
    moment: str
    verdict: str
    ending: str
    gripe: str
    maker: str


@dataclass(frozen=True)
class Inquiry:
    """A documentary: `finds` is a clause; `target` the body it concerns, `deed` what it does about the film."""

    title: str
    subject: str
    finds: str
    target: str
    witness: str
    said: str
    reply: str
    deed: str
    result: str
    craft: str


@dataclass(frozen=True)
class Part:
    project: str
    kind: str
    part: str
    needs: str
    boast: str
    hitch: str
    doubt: str
    heir: str


@dataclass(frozen=True)
class House:
    head: str
    news: str
    why: str
    quote: str
    other: str
    detail: str


@dataclass(frozen=True)
class Fuss:
    """A festival's quarrel: `head` for titles, `news` a clause, both sides, and how it ended."""

    head: str
    news: str
    against: str
    answer: str
    detail: str


# fmt: off
SERIES = tuple(Series(*row) for row in (
    ("The Signal Box", "crime series", "two railway policewomen who solve thefts along one branch line", "an interrogation held in a moving train", "the best argument for slow trains in years", "the stationmaster turned out to have bought his own alibi", "the plot changes at every stop", "I wrote it on the 7.14 and it shows"),
    ("Ward Eleven", "hospital drama", "the night shift of a hospital that is to be merged with its rival", "a birth during a power cut", "medicine without heroes", "the merger went through and half the cast with it", "nobody ever seems to eat", "We asked nurses to throw out every line they had never heard"),
    ("Kingdom of Crumbs", "comedy", "a family bakery with three heirs and one oven", "a fight fought with flour at five in the morning", "warm, and properly proved", "the oven was sold and the heirs bought it back", "there is one bread joke per slice", "My uncle has stopped speaking to me, so it must be accurate"),
    ("The Ministry", "political drama", "the private office of a minister who has not been told she is to be sacked", "a reshuffle conducted by text message", "power shown as a diary with gaps", "she sacked the man who had come to sack her", "everybody walks too fast", "Politicians write to say that it is unfair and ask who told us"),
    ("Low Season", "drama", "a seaside hotel in the five months when nobody comes", "a New Year's party for four guests", "nothing happens, beautifully", "the hotel burnt down while everyone was at the pier", "the sea is on overtime", "We filmed in January, and the cold is not acting"),
    ("Ghost Tariff", "thriller", "an energy inspector who finds a town that uses no electricity", "a meter running backwards", "as gripping as any bill", "the town had been drowned in 1961", "an episode could be switched off", "I wanted a monster that sends invoices"),
    ("Thirteen Kilometres", "crime drama", "a murder on a border that two police forces claim", "a body moved by half a metre", "a procedural about politeness", "both inspectors resigned and neither named the killer", "the subtitles do the overtime", "We had one rule: no one may shout"),
    ("The Understairs", "children's series", "a school whose cleaners are retired spies", "a coded message in the register", "clever, and never winks", "the headmistress had been the enemy's pen pal all along", "the villain's cat is computer-made and looks it", "Children forgive anything except being explained to"),
    ("Glasshouse", "science-fiction series", "four botanists sealed in a dome on a salt plain", "a tomato shared on day four hundred", "claustrophobia with flowers", "the door had been open since the second episode", "the robot has read too much philosophy", "We grew every plant you see, and three of them made it"),
    ("Court Number Nine", "legal drama", "a court that hears nothing but parking cases until one driver turns out to be missing", "a witness who answers only in the past tense", "the small print has teeth", "the judge recused himself and took the stand", "real courts have worse chairs", "I sat in the public gallery for a year and brought sandwiches"),
    ("Fathom", "disaster series", "a ferry sinking, told in eight hours by eight people", "a lifeboat seen from below", "exact, angry and without music", "the eighth hour belonged to the man who had signed the certificate", "hour five treads water", "Families read every script, and we changed what they asked us to change"),
    ("Fifty Ways to Leave a Village", "comedy drama", "a match-maker in a village with eleven inhabitants", "a bus that nobody gets on", "funny until you count the houses", "the match-maker left on the bus", "the donkey is upstaged by the priest", "The village is real, and it would like more parking"),
    ("The Long Weekend", "reality series", "sixteen strangers who have to run a small town without its council", "a quarrel over bins that lasts two episodes", "democracy as a contact sport", "the strangers were voted out by the residents", "the music thinks it is a war film", "We expected tears about money and got tears about parking"),
    ("Iron Crown", "historical epic", "three sisters and a throne built for one", "a coronation in the rain with a borrowed crown", "costumes with people in them", "the youngest melted the crown down", "one battle looks like the next", "We had four hundred extras and one working lavatory"),
    ("Dial Tone", "period thriller", "a telephone exchange in a city under curfew", "a call put through to the wrong general", "suspense by the metre of cable", "the last operator cut every line at once", "the cigarettes deserve billing", "My grandmother worked a switchboard and listened to everything"),
    ("Second Serving", "cooking contest", "amateur cooks who may use only what others threw away", "a soufflé made from stale rolls", "the rare contest that leaves you hungry and ashamed", "a bus driver beat a surgeon with a pot of peelings", "the countdowns last longer than the cooking", "The bins behind our studio are the cleanest in town"),
    ("Hollow Lane", "detective series", "an inspector who has lost her memory of the case she is accused of botching", "a confession she has to read as if it were new", "twisty, without cheating", "she had solved it the first time", "one flashback too many, appropriately", "The ending was fixed before the first line was written"),
    ("The Apprentices", "workplace comedy", "a crane school in a port without cranes", "a practical exam on a balcony", "silly, skilled and short", "the cranes arrived and the school was closed", "the boss shouts where a look would do", "Our technical adviser laughed only at the accidents"),
    ("Northern Watch", "spy series", "a lighthouse that is not on any list", "a lamp that blinks out of rhythm", "cold enough to see your breath", "the keeper had been sending weather reports to both sides", "too many men in the same parka", "There are no guns because nobody there could afford one"),
    ("Inheritance Tax", "family saga", "five siblings and a factory that makes umbrellas", "a will read out during a drought", "grand, petty and irresistible", "the factory went to the driver", "three weddings need to be one", "I have four siblings and a good lawyer"),
    ("Deep Pan", "teen drama", "the delivery riders of a pizzeria where something is cooked in the cellar", "a race across roofs with six boxes", "fast, greasy and good", "the cellar held a printing press", "the slang has aged since Tuesday", "They corrected my slang, and then corrected the corrections"),
    ("The Night Editor", "newsroom drama", "a paper that must fill page three on the eve of a coup", "a headline set by hand", "deadline as destiny", "page three was left blank", "journalists will find the desks too tidy", "We hired a retired subeditor, who cut the script by a third"),
    ("Orchard Street", "soap opera", "one street and its forty-year quarrel about a tree", "the tree coming down live on air", "shameless, and good at it", "the tree grew back in the last shot", "a twin appears when ratings dip", "It is our ten-thousandth day and nobody has agreed on the tree"),
    ("Salt and Iron", "western series", "a saltworks strike in a county without a sheriff", "a meeting held in the middle of a lake", "slow as evaporation and as strange", "the owners left and took the railway with them", "the banjo should unionise", "We built a town, and a swallow nested in the bank, so the bank stayed"),
    ("The Listening Room", "psychological drama", "a therapist whose patients all describe the same house", "a session in which nobody speaks", "two chairs, and you can't look away", "she drove there and her own key fitted", "the metaphors come in pairs", "Each episode is one take, and one take in nine worked"),
    ("Zero Gravity Dental", "animated comedy", "a dentist's practice on a space station", "a wisdom tooth in orbit", "stupid in the most thoughtful way", "the tooth came back", "two jokes per second and one lands", "The drawing is simple because we can't draw hands"),
))

DOCUMENTARIES = tuple(Inquiry(*row) for row in (
    ("The Quiet Shift", "night work in parcel depots", "shifts of fourteen hours had been entered as two shorter ones", "the depots' association", "a sorter who kept her own timesheets", "I wrote the hours on my arm, because paper was not allowed inside", "Isolated cases are being sold as a system", "asked a court to stop the broadcast", "the labour inspectorate opened files on nine depots", "filmed with a lens hidden in a lunch box"),
    ("Downstream", "a river and the tannery that drains into it", "warnings about chromium lay in a drawer for eleven years", "the regional water board", "a retired laboratory assistant", "I typed the numbers, and the next day they were typed again, smaller", "The samples shown were not taken by our method", "published its own figures, six of them new to the public", "prosecutors asked for the laboratory's books", "built almost wholly from the board's own minutes"),
    ("Second Verdict", "a man jailed for a fire that may not have been lit", "the expert at the trial had examined a different building", "the prosecution service", "a juror who has not slept well since", "We were shown a plan, and it was the wrong house", "The courts are the place for new evidence, not the cinema", "refused to release the trial photographs", "a review commission took up the case", "patient to the point of fury"),
    ("Who Owns the Fog", "a valley where mist is caught in nets and sold", "two villages had signed away their clouds without knowing it", "the bottling company", "a shepherd who now pays for dew", "My father drank the fog for nothing", "We bring pipes, taps and wages to a poor valley", "withdrew its advertising from the broadcaster", "the provincial council suspended the licence", "mostly white, and never dull"),
    ("Understudies", "the doubles who do what stars are said to do themselves", "injury records had been kept by the insurers and by nobody else", "the producers' federation", "a stuntwoman with eleven fractures", "I have died for four people who never learned my name", "Safety on our sets has never been better", "invited the film-makers to a meeting and then cancelled it", "the actors' union demanded a public register", "sharp, funny and sore"),
    ("The Ninth Island", "an island that was sold while its people were at sea", "the deed bore the name of a man already buried", "the land registry", "a teacher who counts forty pupils and no school", "We came back with fish, and there was a fence", "All entries were made in good faith", "corrected one entry without comment", "the environment minister promised a search of the archive", "shot over six summers"),
    ("Small Print", "the lenders who follow gamblers home", "the same telephone numbers were bought and sold nine times", "an association of online lenders", "a bus driver who owes more than his flat is worth", "They rang to wish me a happy birthday and offer me a loan", "Our members are licensed and their customers are adults", "sent the director a bill for use of its logo", "the financial regulator announced a review", "the rare film about debt that has a pulse"),
    ("Mother Tongue, Father Land", "the last two speakers of a language, who are not on speaking terms", "the recordings that could have saved it were wiped to tape over with sport", "the state broadcaster", "the elder of the two, who is ninety-one", "I have nobody left to be rude to", "Tape was expensive, and we regret it", "opened its sound archive to the public", "a search turned up forty hours that had been thought lost", "a comedy that turns its back on you and weeps"),
    ("Twelve Chairs", "a care home in the year after its owners changed", "the budget for food had fallen below that of the city's kennels", "the home's operator", "a cook who resigned over soup", "I was told to water it, so I left", "The quotes are two years old and the kitchen is new", "banned cameras from all its houses", "inspectors visited fourteen homes in one night", "quiet, and unable to look away"),
    ("Grounded", "pilots who flew while ill because they could not afford not to", "confidential reports had been forwarded to managers", "the airline pilots' medical service", "a captain who has lost his licence", "The form asked whether I slept, and I lied, because everybody lies", "The confidentiality of our patients is beyond question", "suspended two of its staff", "the aviation authority changed the form", "tightly cut, with a soundtrack of cockpit hum"),
    ("The Seed Vault Keeper", "a botanist who hid a collection through a war", "the seeds that were shown to visitors were sand", "the academy of sciences", "the botanist's daughter", "He guarded the sand so well that nobody looked in his boots", "The academy honours a difficult man", "named a reading room after him", "a seed bank asked to test what is left", "full of soil and hands"),
    ("Extra Time", "boys who are sold by football academies", "contracts had been signed in languages the parents could not read", "a group of football agents", "a striker of seventeen who sleeps at a bus station", "They took my passport to keep it safe, and it is very safe", "We give chances to those who have none", "threatened to sue in three countries", "police searched the rooms of two agents", "made by a former player, and it tackles hard"),
    ("A Hundred Doors", "the women who cleaned a parliament for thirty years", "the cleaners knew of two coalitions before the papers did", "the administration of the house", "a cleaner who never once sat in the chamber", "They leave everything on the desk, because who would look at us", "We value every member of staff", "invited the cleaners to a reception", "pay talks that had been stuck for a year were resumed", "a political film with mops"),
    ("Black Ice", "a motorway that kills in one particular bend", "the bend was built eight metres tighter than it was drawn", "the roads agency", "a surveyor who measured it on a Sunday", "A drawing can't kill anyone, but a saving can", "The bend meets the standard of its time", "lowered the limit overnight without an announcement", "parliament's auditors asked for the plans", "a detective story told in asphalt"),
    ("The Choir of the Deaf", "a choir that signs Bach", "funding had been refused because it made no sound", "the arts council", "a conductor who went deaf at thirty", "They asked what the audience would hear, and I said: look", "The rules on music grants are being revised", "sent its chair to a concert", "the grant was paid, with an apology", "never louder than when it is silent"),
    ("Made Elsewhere", "the label that says where a shirt was sewn", "shirts crossed a border for one night to change nationality", "the textile traders' guild", "a driver who did the round trip three hundred times", "Out with shirts, back with the same shirts, better papers", "All goods carried valid certificates", "called for stricter rules on labels", "customs officers stopped a convoy of eleven lorries", "a pursuit, across two borders, of one button"),
    ("The Weather Women", "the forecasters of a national station, all of them women until it paid well", "the first storm warning to save a town was credited to the man who read it out", "the meteorological service", "a forecaster of eighty-eight", "I drew the storm; he had the tie", "The service is proud of all its pioneers", "changed the plaque in its entrance hall", "four former colleagues came forward with their own charts", "breezy, with pressure underneath"),
    ("Ghost Ward", "a clinic that billed for patients who did not exist", "one dead man had been given physiotherapy for two years", "the clinic group", "a bookkeeper who checked a birthday", "He was a hundred and nine and improving", "A computer fault was found and mended", "dismissed its auditor", "insurers demanded their money back", "told as farce, since nothing else would do"),
))

PARTS = tuple(Part(*row) for row in (
    ("The Salt King", "historical drama", "a merchant who buys a coastline", "learning to row with a broken wrist", "I've been offered kings before, but never one who does sums", "dates that clash with a stage run", "It broke my heart and my diary", "has never had a leading part in the cinema"),
    ("Marigold", "biographical film", "a singer who gave up at the height of her fame", "three months of singing lessons, so as to sing badly in the right way", "She stopped because she had said it, and I envy that", "a quarrel over who would sing", "I wanted to use my own voice and they wanted hers", "sang in hotel bars for ten years"),
    ("The Bridge Inspector", "thriller", "an engineer whom nobody believes", "two weeks on real bridges with a hammer", "He listens to steel, and I've been married, so I can listen", "a back injury", "My doctor read the script and laughed", "was an engineer before drama school"),
    ("Old Enemies", "comedy", "one half of a pair of feuding neighbours", "growing a prize marrow", "I have waited all my life to be this petty", "a disagreement about the ending", "They wanted us to hug", "used to live next door to the director"),
    ("Hector at the Gate", "epic", "a soldier guarding a city that has already fallen", "six months of sword work", "He knows he will lose and he irons his tunic", "a change of director", "I signed up with a poet and was sent a general", "did the stunts on the last three films of this kind"),
    ("The Lighthouse Wife", "ghost story", "a woman who answers a lamp's signals", "living for a fortnight without electricity", "She is the only sane one, which is why they are afraid", "a family illness", "Some things come before a call sheet", "grew up on an island with nine houses"),
    ("Cold Reading", "satire", "a fortune-teller hired by a bank", "taking a course in card tricks", "I told the producers how much they would pay me and I was right", "talks over money", "My agent saw no future in it", "reads tea leaves, badly, at parties"),
    ("Ninety-Nine Steps", "sports drama", "a marathon runner who finishes last", "running, every morning, slowly", "Anybody can play a winner, and most of us do", "a stress fracture", "I trained too well for a man who loses", "ran for a junior national team"),
    ("The Trial of Dr Amsel", "courtroom drama", "a doctor who refuses to defend himself", "sitting in on real trials", "He has four pages of silence, and they are the best pages", "insurance", "They wanted a guarantee that I wouldn't go climbing", "has played judges on three continents"),
    ("Postcards to Nobody", "romantic comedy", "a stamp designer who has given up on letters", "drawing the stamps that appear in the film", "I wanted a love story in which people can spell", "a clash with a television contract", "I can't be in love on two islands at once", "was spotted in an advertisement for glue"),
    ("Iron Lung", "period drama", "a polio patient who runs a newspaper from bed", "acting with the face alone for two hours", "The less I could move, the more I wanted to say", "criticism from disabled actors", "They were right, and I should have asked before I said yes", "has used a wheelchair since the age of nine"),
    ("The Bandit Queen's Accountant", "adventure comedy", "a bookkeeper kidnapped for his arithmetic", "riding a mule without dignity", "He brings a pencil to a gunfight", "a fear of mules", "I tried, the mule tried", "comes from the circus"),
    ("Winter Palace, Room Six", "chamber play", "a maid who hears a revolution through the wall", "polishing silver for real", "She has the smallest part in history and the biggest in the film", "a delay of half a year", "By then I would be playing somebody's mother", "played the part on stage in a cellar"),
    ("Black Swan Motel", "crime film", "a motel owner with one permanent guest", "shadowing a night porter", "Everyone who signs in lies, so I just play the pen", "the script's fourth version", "My part had become a telephone call", "wrote to the director by hand"),
    ("The Astronomer's Cat", "family film", "the voice of a cat that discovers a comet", "eleven days in a recording booth", "I purr for ninety minutes and I've never felt so free", "a throat operation", "I was told to be silent for a month, which the cat could have managed", "makes a living reading timetables at railway stations"),
    ("Free Kick", "sports comedy", "a referee who changes her mind", "passing the real referee's exam", "It took me three attempts to pass, which I count as research", "a knee", "It went on a Tuesday, in a scene about stretching", "blew the whistle in a real regional league"),
    ("Harbour Master", "crime drama", "an official who counts containers and finds one extra", "learning to steer a tug", "He is honest out of boredom, I like that", "a row about the accent", "I was told I sounded like three different ports", "speaks the dialect at home"),
    ("The Second Mrs Lund", "psychological drama", "the woman who moves into a dead wife's house", "wearing a dead woman's clothes for a week", "The first wife has all the good scenes and she isn't in it", "pregnancy", "It's happy news, and it doesn't fit the corset", "had read for the smaller part"),
    ("Parliament of Owls", "political thriller", "a whip who knows everyone's birthday", "a month in the corridors of parliament", "Nobody is threatened, they are only remembered", "remarks in an interview", "I was asked a question and I made the mistake of answering it", "once worked as a parliamentary clerk"),
    ("The Map Thief", "heist film", "a librarian with a scalpel", "handling old paper under supervision", "I cut one page and felt sick for two days", "a shoulder", "Stealing maps is more athletic than it looks", "studied palaeography and never used it"),
    ("Any Other Business", "workplace comedy", "a secretary who has taken the minutes of a collapse", "typing at a hundred words a minute", "She corrects their grammar while the company burns", "a better offer", "It is called a career, people have them", "temped in eleven offices"),
    ("Sister Vega", "science-fiction film", "a nun on a generation ship", "a silent retreat", "She prays for people who haven't been born", "the length of the shoot", "Nine months is a long time to look at a green wall", "left a doctorate in physics to act"),
))

HOUSES = tuple(House(*row) for row in (
    ("to reopen with seats from closed theatre", "is to reopen after {years} years, with seats bought from a closed theatre", "The building had been a carpet store, and the screen was still behind the carpets", "We pulled back a rug and there was the cinema", "I hope they have fixed the heating, it was a legend", "The first film will be the one that was advertised on the façade when it closed."),
    ("scraps advertisements before films", "has stopped showing advertisements before the main film", "Complaints had outnumbered compliments for the first time", "The film now starts when we say it starts, and people are late for it", "It's brave, and I give it a year", "Ticket prices go up a little to make up for the loss."),
    ("bought by its audience", "has been bought by {owners} of its regulars", "The owner wanted to sell to a gym", "I own one two-thousandth of a popcorn machine", "They love films, now they'll have to love drains", "Every shareholder has one vote, whatever they paid."),
    ("shows films to babies and sells out", "fills its hall on weekday mornings with parents and infants", "A mother had been asked to leave a matinée", "Somebody cries in every film, and now it's at the front", "They talk less than the critics", "The lights stay half on, the sound is turned down and prams park in the foyer."),
    ("closes after flood", "will close for good after a flood in the projection room", "The insurer would not cover water from above", "The sea came for the villains and took the projector", "My first kiss was in row M, I'd like row M", "Of the two projectors, one is to go to a museum."),
    ("bans telephones at door", "takes telephones from its visitors at the door", "Screens in the dark had led to a fist fight", "You get it back, with messages, in two hours", "What if my babysitter rings?", "A landline in the foyer is answered by the cashier, who will fetch you."),
    ("screens eleven-hour film without interval", "showed a film of eleven hours without a break", "A bet between two projectionists had got out of hand", "We lost forty people at lunch and six at the funeral", "I don't remember the plot, I remember my neighbours", "Visitors were allowed blankets and one hot meal."),
    ("staff walk out over rota", "was dark at the weekend after its staff walked out", "A new rota had been drawn up by software", "It had me closing the bar and opening it at the same minute", "Nobody likes a strike, but they only wanted a Sunday", "Management has promised to look at the rota by hand."),
    ("moves to boat", "is moving to a barge on the river", "The rent had doubled in two years", "If we don't like the neighbours we can cast off", "It rocks, and in the battle scenes that's a plus", "The barge takes a hundred and ten people, fewer at high water."),
    ("sued over seat width", "must widen its seats after a court ruling", "A visitor had been stuck for an entire comedy", "We measured the audience of 1934 and it had been hungry", "I laughed, which made it worse", "Forty seats will be lost."),
    ("wins right to show football", "may show football on its big screen, a court has ruled", "The league had argued that a cinema was not a pub", "Same screen, same crisps, more shouting", "I'd rather see goals than previews", "Films are to be shown on all other evenings."),
    ("gives free tickets to over-90s", "lets people over ninety in for nothing", "Somebody had looked up who used to come", "They've paid already, they paid in the fifties", "I went to see the ushers' uniforms, they've been let go", "The oldest visitor so far came with her daughter, who paid the pensioners' rate."),
    ("finds lost silent film in cellar", "has found a silent film that was thought lost", "Boxes had been holding up a shelf", "It was labelled “do not sit”, so everybody sat on it", "Half a reel is vinegar and the rest is a miracle", "Archivists have begun to copy it, frame by frame."),
    ("turns last row into quiet compartment", "has set aside its last three rows for people who want silence", "A survey of visitors had come out evenly split", "You may laugh in there, but not rustle", "The rustlers paid too", "Popcorn in these rows is served in cloth bags."),
    ("fights plan for multiplex", "is fighting a plan for twelve screens next to the motorway", "The council had sold the land in private", "Twelve screens, and I bet they show four films", "Young people want to park, it's as simple as that", "A petition is lying next to the till."),
    ("replaces posters with paintings", "has its posters painted by hand again", "A sign painter had offered to work for tickets", "The stars never look like themselves, it makes people come in and check", "I thought it was a new film about my uncle", "The paintings are auctioned when a film leaves."),
))

FUSSES = tuple(Fuss(*row) for row in (
    ("juror resigns over sponsor", "a member of the jury resigned over a sponsor that makes surveillance cameras", "I was filmed on my way to watch films", "The sponsor pays for the subtitles and has no say", "The logo was taken off the bags and stayed on the screen."),
    ("projectionists threaten strike", "the projectionists threatened to stop work on the last weekend", "We have been carrying the festival, literally, up the stairs", "They are right about the stairs", "A wage rise and a goods lift were agreed in the early hours."),
    ("film withdrawn after threats", "a film was withdrawn after threats against its lead", "They have not seen it, they never have", "We won't name the people who wrote, because that's what they want", "Two hundred people watched it in a private flat, in shifts."),
    ("critics shut out by ticket system", "a ticket system shut out the critics for an entire morning", "I reviewed the foyer", "It was tested with eleven users, and there were nine thousand", "Paper tickets came back the same evening and were kept."),
    ("director absent as passport refused", "a director was refused a passport by the authorities at home", "They have let the film travel and kept me, which shows you who they're afraid of", "Her chair stays empty, in the front row, with her name on it", "The question-and-answer session was held by telephone."),
    ("machine-written script provokes boos", "the director of a film admitted that its script had been written by a machine", "I was moved, and now I want it back", "I rewrote every line but four", "The rules did not forbid it; next year's will."),
    ("red carpet dress code dropped", "a dress code was dropped after a documentary maker was turned away in boots", "I have filmed a glacier in these", "It was a rule for photographers and it has outlived them", "Boots were seen on half the carpet the night after."),
    ("walk-out over war film", "a third of the audience walked out of a film about a massacre", "If you close your eyes, you hear it, and that's worse", "Nobody who stays has complained", "A second screening sold out within minutes."),
    ("jury splits over disqualified short", "a short film was disqualified because it had been shown at a wedding", "There were sixty guests, and they were all in it", "A premiere is a premiere", "It was put back into the programme, out of competition."),
    ("hotel prices drive out young film-makers", "forty young directors pitched tents outside the festival palace", "My film cost less than my room", "We can't set the price of a bed, but we can lend a lawn", "Residents offered spare rooms; three hundred, by the end."),
    ("subtitles swapped at gala", "the subtitles of two films were swapped at a gala", "They laughed in all the wrong places and it was the best screening we ever had", "It took us nine minutes to notice and forty to stop blushing", "Both films were shown again, with the right words."),
    ("protest over all-male shortlist", "directors protested against a shortlist without a single woman", "You found room for two films about the same horse", "The selection committee was blind to names and, it seems, not only to names", "Two more films were added to the competition."),
))
# fmt: on

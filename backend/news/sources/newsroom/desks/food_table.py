# ruff: noqa: E501 (prose reads better unbroken)
"""What the food desk finds on the table: kitchens, dishes, recipes and glasses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kitchen:
    """A style of cooking with dishes as (name, what it was like) and one that failed."""

    style: str
    dishes: tuple[tuple[str, str], ...]
    poor: tuple[tuple[str, str], ...]
    sweet: tuple[str, ...]


KITCHENS: tuple[Kitchen, ...] = (
    Kitchen("seafood", (("grilled mackerel with gooseberries", "the skin crackled and the fruit bit back"), ("a bowl of mussels in cider", "we drank what was left with a spoon and then without one"), ("turbot on the bone", "it needed lemon and nothing else, and got nothing else"), ("crab on toast", "the brown meat was spread like butter, which is how it should be"), ("fish soup with saffron", "thick enough to hold a crouton by the waist"), ("razor clams with garlic", "they came from the plancha still arguing")), (("squid", "had been cooked until it gave up"), ("a lobster roll", "was mostly roll"), ("oysters", "were opened with shell in every second one")), ("a lemon tart with a burnt top", "rhubarb with custard", "brown bread ice cream")),
    Kitchen("vegetarian", (("celeriac baked in salt", "it was cracked open at the table with a hammer and smelled of a wet forest"), ("beetroot tartare", "it has no wish to be beef, and wins by that"), ("leeks with hazelnuts", "charred black, peeled white, and sweet as onions never dare to be"), ("a cabbage pie", "the crust alone was worth the bus fare"), ("mushrooms on polenta", "loose, hot and reckless with butter"), ("aubergine with miso", "it collapsed at the sight of a fork")), (("cauliflower steak", "was a cauliflower, with pretensions"), ("a salad of shoots", "looked like the sweepings of a florist"), ("tofu", "lay there")), ("a baked apple with bay leaf", "chocolate cake made with black beans", "pear sorbet with pepper")),
    Kitchen("Italian", (("tagliatelle with hare", "the sauce had clearly been on the stove before we booked"), ("artichokes fried whole", "they opened like bronze flowers"), ("risotto with bone marrow", "it moved across the plate in a slow wave"), ("gnocchi with brown butter and sage", "each of them the weight of a good excuse"), ("veal with tuna sauce", "served cold, as it should be, and thin enough to read through"), ("a pizza with anchovies and lemon", "blistered, wet in the middle, gone in four minutes")), (("carbonara", "had been told about cream"), ("burrata", "came straight from the fridge and tasted of the door"), ("ravioli", "had opened in the pot like a bad secret")), ("a tiramisu spooned from a basin", "almond granita", "panna cotta with bitter caramel")),
    Kitchen("grill", (("lamb ribs", "the fat had gone to glass"), ("a sirloin for two", "dark outside, and inside the colour of a good sunset"), ("chicken over charcoal", "brined, smoked, torn, and eaten in silence"), ("sweetbreads on a skewer", "crisp as popcorn and soft as a pillow"), ("sausages made in the cellar", "coarse, loud, full of fennel"), ("a whole sea bream in vine leaves", "it came off the bone in two moves")), (("the burger", "needed a knife, a napkin and an apology"), ("chips", "were limp before they reached us"), ("a pork chop", "had been rested into a coma")), ("grilled pineapple with rum", "cheese from the next village", "a meringue the size of a hat")),
    Kitchen("noodle", (("ramen with smoked pork", "the broth took two days and it shows"), ("hand-pulled noodles with cumin lamb", "slapped on the counter in front of us, nine times"), ("dumplings in chilli oil", "the wrappers were as thin as an argument"), ("cold buckwheat noodles", "on a bamboo mat, with nothing to hide behind"), ("rice noodles with beef and star anise", "a bowl one could be ill with, in the best way"), ("sesame noodles with minced pork", "our lips hummed until the station")), (("spring rolls", "were autumnal"), ("the vegetable broth", "was warm water with a memory"), ("a salad of seaweed", "came from a bucket and tasted of one")), ("black sesame ice cream", "a mango in slices, perfectly ripe", "sweet dumplings in ginger tea")),
    Kitchen("Levantine", (("hummus with lamb", "warm, loose, and with a lake of brown butter in the middle"), ("grilled aubergine with tahini", "it tasted of smoke and patience"), ("stuffed vine leaves", "rolled by somebody's aunt, the waiter said, and we believe it"), ("a shoulder of goat", "it had been in the oven since the night before"), ("flatbread with za'atar", "it came every ten minutes without being asked for"), ("fattoush", "sour, cold, crisp, with sumac on the fingers")), (("falafel", "could have been played with rackets"), ("a mixed grill", "was mixed in quality, too"), ("rice", "had been reheated and did not forgive it")), ("rose water pudding", "walnut pastries", "figs with sheep's cheese")),
    Kitchen("Indian", (("a dosa as long as an arm", "crisp, sour, gone"), ("black lentils", "stirred for a night, and it tastes of a night"), ("prawns with curry leaves", "they crackled like a radio"), ("lamb biryani", "the lid was sealed with dough, and the steam did the talking"), ("okra fried in slivers", "we ate it like crisps, with shame, twice"), ("a fish curry with tamarind", "sour first, then hot, then gone")), (("butter chicken", "was pudding"), ("a thali", "had six bowls and two flavours"), ("naan", "had the texture of a bath mat")), ("carrot halva", "pistachio kulfi", "saffron yoghurt")),
    Kitchen("tavern", (("a pie with ox cheek", "we broke the crust and lost each other in the steam"), ("roast goose with red cabbage", "the bird had a skin like a violin"), ("potato dumplings", "light, which is a matter of the wrist"), ("liver with apples", "pink, sweet, and braver than the rest of the menu"), ("pea soup", "one could have stood a spoon in it, and someone had"), ("calf's head in vinegar", "nobody orders it, and everybody should")), (("schnitzel", "overhung the plate and undershot the promise"), ("the roast", "swam"), ("a trout", "had died twice")), ("plum dumplings", "bread pudding with whisky", "a poppy seed strudel")),
    Kitchen("modern", (("an egg yolk cured in soy", "a small sun on a cold plate"), ("scallop with sorrel", "two bites, and the second was sad because it was the last"), ("venison with elderberry", "the best sauce we have had this year"), ("turnip in its own broth", "a humble thing in evening dress"), ("pigeon in hay", "the smoke lifted with the lid, as rehearsed"), ("a single potato", "cooked for six hours, and worth five of them")), (("course nine", "was foam, and then was not"), ("an oyster with white chocolate", "was an idea"), ("the bread course", "came with a speech")), ("beeswax ice cream", "sour cherry with tarragon", "a chocolate that smelled of pipe tobacco")),
)  # fmt: skip

PLACES = (
    "The Salt Cellar",
    "Two Spoons",
    "Marrow",
    "The Blue Heron",
    "Nettle & Rye",
    "Osteria Lume",
    "Grandmother's Debt",
    "The Copper Pan",
    "Ember",
    "Number Eleven",
    "The Idle Fork",
    "Casa Brea",
    "Plum",
    "The Weighbridge",
    "Sorrel",
    "The Anchor Room",
    "Low Tide",
    "Table Nine",
    "Kiln",
    "Tannin",
    "The Post Office",
    "Half Moon",
    "Cellar Door",
    "Fig & Smoke",
    "The Long Table",
    "Radish",
    "Mother Tongue",
    "The Pickle Works",
    "Second Helping",
    "Quarter Past",
    "Juniper Lane",
    "The Ferryman",
    "Brine",
    "The Yellow Kitchen",
    "Beech",
    "Thimble",
    "Onion Street",
    "The Last Tram",
    "Caraway",
    "Hearth",
    "The Net Loft",
    "Cinder",
    "Parsley & Son",
    "The Upper Crust Room",
    "Walnut",
    "The Old Customs House",
    "Pear Tree Yard",
    "Tin Roof",
    "Bitter Orange",
    "The Glass House",
    "Oat",
    "Little Wick",
    "Salt Lane",
    "The Hollow Loaf",
    "Bay & Clove",
    "The Second Boat",
    "Larder",
    "Fennel",
    "Our Lady of the Soup",
    "The Quiet Goose",
    "Ash",
    "Bramble",
    "Kitchen Garden Nine",
    "The Spare Room",
    "Medlar",
    "Rind",
    "The Stone Jetty",
    "Tallow",
    "Vinegar Hill",
    "The Winter Table",
)
CHEFS_PLACES = ("Black Walnut", "The Old Sluice", "Sugar & Lead", "The Blind Pig Keeper", "Damson", "Three Chimneys", "The Lamp Room", "Quayside Nine", "Mother Hubert", "The Silver Ladle", "Loam", "The Rope Maker", "Chez Perpetua", "Cask & Bone", "The Ninth Wave", "Verjus", "Pantry", "The Gilded Carp", "Nonna Ferro", "Hay", "Foundry", "The Lock Keeper", "Quill", "Saffron Yard", "Eel Pie Stairs", "The White Apron", "Gravel", "Tamarind Court")  # fmt: skip

ROOMS = (
    "a former tram depot with the rails still in the floor", "a low room with eleven tables and one good lamp", "a pharmacy whose drawers now hold cutlery", "the back of a fishmonger's, behind a curtain of plastic strips", "a villa with a peeling ceiling that somebody has had the sense to leave alone",
    "two shipping containers and a fig tree", "a cellar where tall people eat with care", "a bright box of concrete, kinder than it sounds", "a garage that still smells, faintly, of tyres", "a courtyard under a vine, with heaters for the timid",
    "a houseboat that leans when the kitchen is busy", "the first floor of a bank, with the safe as a wine store", "a chapel with the kitchen where the altar was", "a corner shop with its old sign, “Buttons and Ribbons”", "a long counter with fourteen stools and no view but the stove", "a glass pavilion in the park, all reflections and draughts",
)  # fmt: skip

SERVICE = (
    "The waiter knew the name of the cow", "Service is quick, kind and slightly deaf", "We were called “folks”, which is not a crime", "The sommelier poured, said “it's odd, you'll like it”, and was right twice", "Our waitress sat down to explain the menu, and one forgave her by the second sentence", "Plates arrived when they pleased, which was not when we did",
    "Somebody filled our glasses before we had noticed that they were empty", "The bill came with two plums and no hurry", "One young man did the work of three and told us so", "Nobody explained anything, bliss", "The coats were lost and found again, with apologies and a glass of something", "The host shakes hands with every guest, including the one who had come to read the meter",
    "They let us split a main course and split it better than we would have", "A birthday at the next table was sung to by the whole kitchen",
)  # fmt: skip

NOISE = (
    "The chairs are built for shorter evenings.", "Bring a jacket; the door and the wind are old friends.", "The music is somebody's youth, played a little too loud.", "At the weekend the room roars.", "One can hear oneself think, and the neighbours too.", "There is no sign; look for the blue lamp.", "The lavatory is across the yard, past the bees.", "The tables for two are tables for one and a half.", "Children get crayons and a bowl of peas in the pod.", "The lighting flatters everybody but the fish.", "Dogs are welcome and behave better than the party at the window.", "Reservations are taken by telephone, between three and four, by a man who sighs.",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    dish: str
    head: str
    why: str
    needs: str
    first: str
    then: str
    last: str
    trick: str
    swap: str
    tale: str
    minutes: int
    serves: int


RECIPES: tuple[Recipe, ...] = (
    Recipe("leek and potato gratin", "Leek and potato gratin that looks after itself", "it asks for twenty minutes of work and then leaves one in peace", "800 grams of floury potatoes, three leeks, 300 millilitres of cream, 100 of milk, a clove of garlic, nutmeg and 80 grams of hard cheese", "Slice the potatoes as thinly as patience allows and the leeks into rings; soften the leeks in butter for ten minutes with salt.", "Warm the cream and milk with the crushed garlic and a little nutmeg. Layer potatoes and leeks in a dish, pour the cream over and press down.", "Bake at 180 degrees for an hour, with the cheese on top for the last quarter.", "Do not rinse the potato slices: the starch thickens the cream", "fennel in place of leeks gives it a sweeter turn", "learned it from a neighbour who would not write it down", 85, 4),
    Recipe("red lentil soup", "A red lentil soup for the end of the month", "everything in it keeps for ages in a cupboard", "250 grams of red lentils, two onions, a tin of tomatoes, a spoonful of cumin, a litre of stock and two lemons", "Fry the onions slowly until they are the colour of straw, then add the cumin until it smells.", "Stir in lentils, tomatoes and stock and let it all simmer for 25 minutes.", "Blend half of it, put it back, and sharpen with the juice of a lemon. The second lemon goes on the table.", "Salt at the end, or the lentils stay hard", "a spoonful of peanut butter makes it rounder", "cooked it through three years of study", 40, 4),
    Recipe("roast chicken with bread salad", "Roast chicken, bread salad, nothing else", "the bread underneath drinks what the chicken loses", "a chicken of 1.6 kilograms, half a loaf of stale bread, a handful of currants, spring onions, vinegar and a bag of bitter leaves", "Salt the bird the day before, inside and out, and leave it uncovered in the fridge.", "Roast it at 220 degrees for fifty minutes, on its back, on the bread torn into lumps. Turn the lumps once.", "Let it rest. Toss bread, currants, onions and leaves with vinegar and the juices from the tin.", "The salting does it: the skin dries and turns to paper", "quails take 22 minutes", "was taught it by a cook who never owned a thermometer", 75, 4),
    Recipe("mushroom barley risotto", "Barley risotto with mushrooms, and no stirring", "barley doesn't need watching", "300 grams of pearl barley, 400 of mushrooms, 20 of dried ones, two shallots, a glass of white wine and a litre of stock", "Soak the dried mushrooms. Fry the fresh ones hard, in two batches, so that they brown and do not weep.", "Sweat the shallots, add the barley, then wine, then all the stock and the soaking water. Lid on, 35 minutes.", "Fold in mushrooms, butter and grated cheese, and wait three minutes.", "Dry mushrooms in a hot pan first and add oil later", "spelt works too and is done sooner", "came to it out of laziness", 55, 4),
    Recipe("fishcakes with dill", "Fishcakes with dill and a pickled cucumber", "they make a supper out of a leftover", "500 grams of cooked white fish, 400 of mashed potato, a bunch of dill, an egg, breadcrumbs and a jar of gherkins", "Flake the fish and check it twice for bones. Mix with potato, dill, egg and the zest of a lemon.", "Shape eight cakes, flour your hands and chill the cakes for half an hour.", "Turn them in crumbs and fry for four minutes on each side. Stir chopped gherkins into sour cream and serve it alongside.", "Cold cakes hold together, warm ones fall apart", "smoked fish for a third of the white one gives it backbone", "grew up on a harbour where nothing was thrown away", 60, 4),
    Recipe("chickpea stew with spinach", "Chickpeas with spinach, garlic and a fried egg", "it comes from tins and tastes of somewhere", "two tins of chickpeas, 400 grams of spinach, four cloves of garlic, a slice of bread, smoked paprika and sherry vinegar", "Fry the bread and the whole garlic cloves in plenty of oil and crush both in a mortar with the vinegar.", "In the same oil, warm the paprika for ten seconds; add chickpeas and a cup of water, and simmer.", "Stir in the paste and the spinach and cook until it is thick. Put a fried egg on top.", "Take the pan off the heat before the paprika goes in, it burns in a breath", "chard is fine, with its stalks", "ate it standing at a bar and asked for the pan", 30, 3),
    Recipe("plum cake", "Plum cake on a yeast dough, as it should be", "plums need something that soaks and doesn't sulk", "350 grams of flour, 20 of fresh yeast, 150 millilitres of milk, 60 grams of butter, an egg, 1.2 kilograms of plums and sugar", "Knead flour, yeast, warm milk, butter and egg to a soft dough and let it double.", "Press it out on a tray and set the halved plums on end, in tight rows, like tiles.", "Bake at 200 degrees for 35 minutes and sugar only when it comes out.", "Sugar beforehand draws out the juice, and then the cake drowns", "apricots are as good, cherries too wet", "bakes it every year on the same Saturday", 120, 12),
    Recipe("onion soup", "Onion soup, slowly", "its only secret is an hour", "a kilogram of onions, 60 grams of butter, a spoonful of flour, a glass of cider, a litre of beef stock, bread and 150 grams of cheese", "Slice the onions and cook them in butter over a low flame for an hour, stirring when you pass.", "When they are brown as a chestnut, dust with flour, add the cider and then the stock. Simmer for twenty minutes.", "Ladle into bowls, float the toast, heap on cheese and grill until it bubbles.", "A pinch of salt at the start and a splash of water whenever the pan gets dry", "for a meatless one, use mushroom stock and a spoonful of soy", "makes it after arguments", 95, 4),
    Recipe("stuffed peppers", "Stuffed peppers with rice and a lot of dill", "they are better on the second day", "eight pale peppers, 200 grams of rice, 300 of minced lamb, an onion, tomatoes, dill and yoghurt", "Fry onion and lamb, stir in raw rice, dill and half of the tomatoes, and season it more than seems right.", "Fill the peppers two-thirds full, stand them in a pot, shoulder to shoulder, and pour on tomatoes and water to half their height.", "Lid on, fifty minutes over a small flame. Eat lukewarm, with yoghurt.", "Leave room: rice doubles, and peppers split", "grated courgette can take the place of lamb", "has it from a mother-in-law, with corrections", 80, 4),
    Recipe("noodles with black vinegar", "Noodles with black vinegar and a cucumber", "it takes as long as water takes to boil", "400 grams of wheat noodles, a cucumber, two spoonfuls of black vinegar, two of soy sauce, chilli oil, sesame paste and peanuts", "Smash the cucumber with the flat of a knife, salt it and leave it while the noodles cook.", "Stir sesame paste, soy sauce, vinegar and a spoonful of the cooking water to a sauce.", "Rinse the noodles cold, toss, and finish with chilli oil, cucumber and crushed peanuts.", "Smashed cucumber holds more sauce than sliced", "tahini does instead of Chinese sesame paste", "lived above a noodle shop for two winters", 20, 3),
    Recipe("braised cabbage with caraway", "A whole cabbage in the oven, with caraway", "a cabbage costs next to nothing and feeds a table", "a pointed cabbage, 80 grams of butter, a spoonful of caraway, a glass of cider, a spoonful of mustard and apples", "Quarter the cabbage through the stalk and brown the cut sides in butter, properly, until black at the edges.", "Add caraway, cider, mustard and the sliced apples, cover and bake at 170 degrees for fifty minutes.", "Take off the lid for the last ten and baste it.", "Be brave with the browning, that is all the flavour there is", "a few slices of bacon underneath do no harm", "was told as a child that cabbage is a punishment", 75, 4),
    Recipe("lemon rice pudding", "Rice pudding with lemon leaf and burnt sugar", "it is a nursery dish that has grown up", "120 grams of round rice, a litre of milk, a strip of lemon peel, a bay leaf, 60 grams of sugar and a pinch of salt", "Blanch the rice for two minutes and drain it. Bring milk, peel and bay to the boil.", "Add the rice and let it tremble for forty minutes, stirring towards the end.", "Sweeten, pour into a flat dish, cool, dust with sugar and burn the top with a hot spoon or a torch.", "Sugar goes in last, or the rice never softens", "oat milk works if it's the creamy kind", "got through a long illness on it", 60, 6),
    Recipe("pork with prunes", "Pork shoulder with prunes for a grey Sunday", "it forgives being forgotten", "1.5 kilograms of pork shoulder, 200 grams of prunes, a bottle of dark beer, three onions, mustard and thyme", "Salt the meat in large pieces and brown it on every side, without hurry.", "Soften the onions in the fat, add mustard, thyme and beer, and put the meat back. Lid on, oven at 150 degrees, two hours.", "Add prunes for the last half hour. Skim, taste, thicken with a crust of bread.", "A crust of rye bread in the pot thickens and seasons it at once", "chicken thighs need fifty minutes in all", "cooks it for moving days", 180, 6),
    Recipe("tomato tart", "Tomato tart with mustard under the fruit", "it keeps crisp, thanks to the mustard", "a sheet of puff pastry, two spoonfuls of sharp mustard, 700 grams of tomatoes, 100 of hard cheese and thyme", "Slice the tomatoes, salt them and let them drip on a rack for half an hour.", "Spread the pastry with mustard, strew the cheese over it and lay on the tomatoes, overlapping.", "Bake at 210 degrees for 35 minutes, on the floor of the oven for the first ten.", "The dripping matters, don't skip it", "in winter use slow-roasted tomatoes from a jar", "sold it at a market for years", 75, 4),
    Recipe("dal with burnt garlic", "Yellow dal with burnt garlic on top", "it costs less than the bread beside it", "300 grams of yellow split peas, turmeric, ginger, three green chillies, six cloves of garlic, cumin seeds and butter", "Boil the peas with turmeric and ginger until they collapse, for about 45 minutes, then beat them with a whisk.", "Heat butter in a small pan, let cumin seeds crackle, then fry the sliced garlic until it is nearly too dark.", "Pour it over the dal at the table, so that it hisses.", "The garlic must be a shade past what you dare", "split mung beans are ready in half the time", "eats it on the evening before every journey", 60, 4),
    Recipe("pickled herring salad", "Herring, beetroot, apple: a salad to make the day before", "a night in the fridge makes friends of them", "six pickled herring fillets, three cooked beetroots, two sour apples, an onion, four potatoes and sour cream", "Cut everything into dice the size of a fingernail, the onion smaller.", "Mix with sour cream, a spoonful of the pickling liquor, pepper and a little sugar.", "Cover, wait until tomorrow and eat it with dark bread and a boiled egg.", "Rinse the onion in cold water and it will not shout", "without the fish and with walnuts it's still good", "is reminded of a railway buffet by it", 35, 6),
    Recipe("cheese dumplings", "Cheese dumplings with browned crumbs", "one bowl, one pot, one pan", "500 grams of curd cheese, two eggs, 120 grams of semolina, salt, 100 grams of butter and a cup of breadcrumbs", "Mix cheese, eggs, semolina and salt, and let the mixture stand for an hour.", "With wet hands, roll dumplings as large as apricots and let them swim in salted water for 12 minutes. It must not boil.", "Brown the crumbs in butter with a spoonful of sugar and roll the dumplings in them.", "A cloth to drain the cheese first saves you the second bowl of semolina", "with chives in place of sugar it's supper", "won a bet with them", 90, 4),
    Recipe("flatbreads with yoghurt", "Flatbreads from a pan, made with yoghurt", "there's no yeast and no waiting worth the name", "300 grams of flour, 250 of yoghurt, two spoonfuls of baking powder, salt, butter and nigella seeds", "Stir flour, baking powder, salt and yoghurt with a fork, then knead for a minute. Rest it under a cloth for ten.", "Roll out eight rounds as thin as a coin.", "Bake in a dry, very hot pan, two minutes each side, and brush with butter.", "The pan should smoke a little before the first goes in", "spelt flour needs a spoonful less yoghurt", "makes them on a camping stove", 25, 4),
    Recipe("squash soup with sage", "Roast squash soup, with its own seeds", "roasting does what an hour of simmering can't", "a squash of 1.2 kilograms, two onions, six cloves of garlic, sage, 800 millilitres of stock and a spoonful of cider vinegar", "Cut the squash in wedges, skin and all, and roast with onions and garlic in their skins at 200 degrees for 45 minutes.", "Scoop, squeeze and blend with hot stock. Rinse the seeds, dry them and roast them with salt.", "Fry the sage leaves until they are crisp. Sharpen the soup with vinegar before it is served.", "Vinegar, a little, at the end: without it, it's baby food", "sweet potatoes are good, and sweeter", "grows eleven kinds on a balcony", 70, 4),
    Recipe("beans with sausages", "White beans, sausages and a long Sunday oven", "the oven does it while one reads", "400 grams of dried white beans, six coarse sausages, a tin of tomatoes, carrots, celery, bay and a head of garlic", "Soak the beans overnight and boil them for forty minutes without salt.", "Brown the sausages, then carrots and celery. Put all into a pot with tomatoes, bay, garlic and bean water to cover.", "Leave it at 140 degrees for three hours, and break the crust twice.", "Break the crust and push it under: that is where the depth comes from", "smoked tofu and more paprika for the vegetarians", "owns one pot, and this is what it's for", 240, 6),
    Recipe("walnut pesto pasta", "Pasta with walnuts, parsley and lemon", "it is what to cook when there's nothing in the house", "400 grams of pasta, 100 of walnuts, a bunch of parsley, a clove of garlic, a lemon and 60 grams of hard cheese", "Toast the walnuts until they smell, and rub off what skin comes willingly.", "Chop them by hand with parsley, garlic and lemon zest, add cheese and oil.", "Thin it with a ladle of pasta water and toss everything off the heat.", "By hand: a machine makes paste of it, and bitter paste at that", "hazelnuts are sweeter, almonds drier", "was locked in a holiday house with a bag of walnuts", 25, 4),
    Recipe("apple pancakes", "Puffed apple pancake from the oven", "it rises like a hat and waits for nobody", "three eggs, 150 millilitres of milk, 90 grams of flour, two apples, 50 grams of butter, sugar and cinnamon", "Heat the oven to 220 degrees with an iron pan in it. Whisk eggs, milk and flour smooth.", "Melt the butter in the hot pan, soften the sliced apples in it with sugar and cinnamon, and pour on the batter.", "Bake for 18 minutes and don't open the door.", "Everything at room temperature, or it won't rise", "pears with ginger, or plums", "serves it at midnight", 35, 3),
)  # fmt: skip


@dataclass(frozen=True)
class Drink:
    kind: str
    head: str
    head2: str
    news: str
    how: str
    maker: str
    quote: str
    taste: str
    critic: str
    figure: str
    end: str


DRINKS: tuple[Drink, ...] = (
    Drink("cider", "Cider from lost apples: {city.name} presses varieties nobody could name", "The orchard detectives and their cider", "a cidery near {city.name} has pressed a cider from {few} apple varieties that were thought lost", "The trees were found along field paths and identified by their pips.", "who runs the cidery", "[One had been holding up a washing line for eighty years|They taste awful raw, that's why they survived]", "tannin, straw and a hint of quince", "[It's like biting into a barn, and I mean it kindly|At last a cider that isn't lemonade]", "There are {many} bottles.", "Cuttings will be given away in spring"),
    Drink("alcohol-free wine", "Alcohol-free wine gets better, slowly", "What is in alcohol-free wine, and does it work?", "sales of alcohol-free wine in {c.name} have risen by {pct}% in a year", "The alcohol is drawn off in a vacuum at 28 degrees, and a good part of the aroma with it.", "who makes it", "[Alcohol is the frame, and we have to hang the picture without it|We add back nothing but what we took by mistake]", "green apple, gooseberry, then a short silence", "[The whites can be drunk, the reds are soup|With food it works, on its own it's juice in a suit]", "Of {few} wines tasted for this page, two were emptied.", "A sparkling one, with tea in it, comes next year"),
    Drink("natural wine", "Natural wine: cloudy, loud and loved in {city.name}", "A bar in {city.name} where the wine is orange", "{few} bars for natural wine have opened in {city.name} in a year", "Nothing is added and little is taken away, so no two bottles are alike.", "who pours it", "[It's alive, and like everything alive it's sometimes in a mood|Guests ask if it's meant to be so, and I say yes, mostly]", "orange peel, hay, and something of a stable", "[Half of it is brave and half of it is off|I have had vinegar with a better label, and I have had a miracle]", "A glass costs about a third more than the house white.", "A fair with {few}0 growers is planned"),
    Drink("craft beer", "Small breweries in {c.name} merge their kettles", "Craft beer after the boom: {few} breweries, one cellar", "{few} small breweries in {city.name} now share one brewhouse, after two years of falling sales", "Each keeps its own yeast, in a fridge with a lock.", "who brews there on Tuesdays", "[We used to compete for the hipster, now we share the boiler|Hops went up, glass went up, beards went out]", "grapefruit, pine and, at last, some malt", "[Fewer beers and better ones, it was time|The imperial smoked pastry stout won't be missed, except by me]", "Since its peak, the number of breweries has fallen by {pct}%.", "The first shared beer is a plain lager"),
    Drink("whisky", "Whisky from {city.name}: the first cask is three", "Rye, peat and a bus garage: whisky made in {city.name}", "a distillery in a former bus garage in {city.name} has bottled its first whisky", "The law asks for three years in wood, and it has had three years and a day.", "who distils there", "[The bank wanted figures and I gave them a glass|You can smell the old buses if you want to]", "rye bread, pear and a little smoke", "[Young, and knows it, and does not apologise|Give it seven years and it'll be on the good shelf]", "The first {many} bottles were raffled.", "The next casks held plum wine before"),
    Drink("tea", "Tea from {c.name}'s own hills, grown between the rain", "First flush in {region}: tea where nobody expected it", "growers in {region} have picked {n} kilograms of tea, more than ever", "The bushes came as seed in a coat pocket, the story goes.", "who planted the first bushes", "[They told me it was too cold, and nobody had told the tea|We pick with the children, they're the right height]", "spinach, chestnut, and a long sweet end", "[It can't compete on price, and it need not|I would pay it once a month, in a small cup]", "A tin of 50 grams costs as much as a good lunch.", "A black tea is to follow in the autumn"),
    Drink("espresso", "Is a robusta the espresso of the future?", "Coffee growers turn to the bean that roasters despised", "roasters in {city.name} have begun to mix robusta, long despised, into their best espresso", "The plant bears more heat than arabica and yields {pct}% more.", "who roasts", "[We've been snobs about a bean because we had met its worst relations|It gives a crema like a duvet]", "dark chocolate, walnut, a bite at the back", "[In milk it's marvellous, alone it still wears boots|Blind, {few} of ten tasters preferred it]", "The price of arabica has doubled in two years.", "A tasting for sceptics is held each Thursday"),
    Drink("kombucha", "Kombucha moves from health shop to hotel bar", "The mushroom on the bar: kombucha with dinner", "{few} restaurants in {city.name} now serve fermented tea with their menus instead of wine", "A culture like a rubber pancake turns sweet tea sour within ten days.", "who ferments it in a cellar", "[I feed it, I talk to it, I have a spare at my mother's|We filter twice, for people who are afraid of strings]", "green plum, vinegar, bubbles that tickle", "[It has what juice lacks: a no in it|The third glass is one too many, as with wine]", "It costs the kitchen a quarter of what wine does.", "One with smoked tea is in the jar"),
    Drink("sparkling wine", "Sparkling wine climbs the hill: growers in {region} go up to {many} metres", "Cooler, higher, fizzier: new sparkling wine from {region}", "growers in {region} have planted vines for sparkling wine at {many} metres, where there used to be cows", "Grapes in the valley ripen too fast and lose their acidity.", "who farms the highest plot", "[My grandfather would have called it goat country, and he was right, I had to evict the goats|Hail is my business partner up here]", "lemon, brioche and cold stone", "[Straight as a ruler|It needs two more years in the cellar, and so do I]", "The first harvest came to {many} bottles.", "A rosé will follow, weather permitting"),
    Drink("gin", "Enough gin: distillers in {city.name} return to plum spirit", "The plum strikes back", "{few} distillers in {city.name} have stopped making gin and gone back to fruit", "Forty kilograms of plums make one bottle worth drinking.", "who distils in the third generation", "[Gin is what you make while you're waiting, and we have waited|There were more labels than junipers]", "plum stone, pepper, warm hay", "[A drink for two sips and a long sentence|The heads are cut clean, the tail is short, hats off]", "Gin sales fell by {pct}% last year.", "A pear spirit from one single tree is for sale, by lot"),
    Drink("tap water", "Restaurants in {city.name} may charge for tap water, and some do", "A carafe of tap water for {price}?", "{few} restaurants in {city.name} now charge {price} for a carafe of tap water", "They filter it, chill it and put a sprig in it.", "who runs one of them", "[It's not the water, it is the glass, the washing up and the chair|Guests drink less wine, and somebody has to pay the lamp]", "cold, with a leaf of mint", "[I'd pay for the honesty of a cover charge|A sprig is no service]", "In a survey {pct}% called it cheeky.", "The city is considering a rule"),
    Drink("hot chocolate", "Hot chocolate, bitter and thick as paint, is back in {city.name}", "A chocolate bar where nobody serves bars", "a café in {city.name} serves nothing but drinking chocolate, in {few} strengths", "The beans are ground on stone in the window.", "who grinds it", "[People come in for a sweet memory and get a bitter one, and they come back|One child cried, and then finished it]", "smoke, raisin, and a grip like red wine", "[The house blend could stand up without a cup|I slept badly and regret nothing]", "Cocoa has trebled in price.", "In summer it will be served cold, with salt"),
    Drink("mead", "Mead without the minstrels: beekeepers in {region} brew dry", "Honey wine grows up", "beekeepers in {region} make a dry mead that sommeliers have put on their lists", "It ferments until no sugar is left and the flowers remain.", "who keeps {n} hives", "[Everybody expects a costume|You can taste which side of the hill they flew to]", "heather, wax and white pepper", "[With cheese it beats most wines, and I sell wine|An honest oddity]", "A poor honey year has cut the output by {pct}%.", "Lime blossom is next"),
    Drink("vermouth", "The hour of vermouth: {city.name} drinks before lunch", "Vermouth on tap in {city.name}", "vermouth on tap is served in {few} new bars in {city.name}, before lunch and with an olive", "Every bar stirs its own, with wormwood and whatever grows on the balcony.", "who stirs it in a bathtub, a clean one", "[It's the only drink that makes you hungrier and cleverer, for half an hour|My recipe has nineteen herbs and one is a lie]", "orange, clove, and a bitterness that says: eat", "[Sunday is saved|The third bar puts too much vanilla in it, the others know what they're doing]", "A glass costs {price}.", "A tasting trail is being printed"),
)  # fmt: skip

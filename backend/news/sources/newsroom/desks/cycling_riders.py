# ruff: noqa: E501 (prose reads better unbroken)
"""The teams, riders, roads and rule breaches of the invented world's cycling."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from backend.news.sources.newsroom.people import Person
from backend.news.sources.newsroom.world import Country, World


@dataclass(frozen=True)
class Rider(Person):
    """A rider, of a team whose name is kept here; `of` is the demonym of the country ridden for."""

    team: str = ""
    of: str = ""


@dataclass(frozen=True)
class Team:
    """A team; plural in the paper ('Corvado have')."""

    name: str
    country: Country = field(repr=False)
    women: bool
    boss: Person
    climber: Rider
    sprinter: Rider
    clock: Rider
    helper: Rider
    young: Rider

    @property
    def riders(self) -> tuple[Rider, ...]:
        return (self.climber, self.sprinter, self.clock, self.helper, self.young)


_NAMES = ("Corvado", "Linde Insurance", "Halcyon-Arvo", "Team Northbank", "Vento Pneus", "Brightwater", "Kessler Tools", "Rondo Coffee", "Marisma", "Team Solstice", "Castellan", "Ferrum-Oak", "Blue Lantern", "Ostara Bikes", "Quayside Credit", "Team Sunda", "Delmar Tiles", "Polder & Dyke", "Granit Nord", "Anker-Vela", "Team Meridiana", "Sorrel Foods", "Tramont Ski", "Hexa Lighting")  # fmt: skip


def _rider(world: World, home: Country, team: str, women: bool, rng: Random) -> Rider:
    country = home if rng.random() < 0.35 else world.country(rng)
    person = world.person(country, she=women, rng=rng)
    return Rider(person.given, person.family, person.she, f"who rides for {team}", team, country.demonym)


def teams(world: World) -> tuple[Team, ...]:
    """Twelve teams of women and twelve of men."""
    rng = Random(f"{world.seed}:cycling")
    made = []
    for index, name in enumerate(_NAMES):
        country, women = world.country(rng), index % 2 == 0
        riders = [_rider(world, country, name, women, rng) for _ in range(5)]
        made.append(Team(name, country, women, world.person(country, "the team manager", rng=rng), *riders))
    return tuple(made)


_CLIMBS = {
    "english": ("Hart Fell", "Gallows Hill", "the Ravenscar", "Long Edge", "Tinker's Bank"),
    "german": ("the Grauhorn", "the Nebeljoch", "the Teufelssteig", "the Hohe Wacht"),
    "nordic": ("the Storfjell", "the Isnuten", "the Trollbakken"),
    "italian": ("the Colle Bianco", "the Passo Grifone", "Monte Sordo", "the Muro di San Biagio"),
    "french": ("the Col de Vaurenne", "Mont Brulé", "the Côte des Moines", "the Col du Pendu"),
    "spanish": ("the Puerto Lobo", "the Alto del Cuervo", "the Cuesta Larga"),
    "portuguese": ("the Alto da Neblina", "the Serra Partida", "the Ladeira Velha"),
    "slavic": ("the Kamen Pass", "the Crna Glava", "the Orlica"),
}
_OTHER_CLIMBS = ("the Eagle Pass", "the Seven Bends", "the Monastery climb", "the Tea Road", "the Radio Mast climb", "the Old Mine road")  # fmt: skip


def climbs(country: Country) -> tuple[str, ...]:
    return _CLIMBS.get(country.land.cultures[0], _OTHER_CLIMBS)


@dataclass(frozen=True)
class Breach:
    """A doping case; `plea` is the rider's explanation, `grounds` a clause for the ruling of a case that is lost or won."""

    substance: str
    plea: str
    science: str
    expert: str
    guilty: bool
    grounds: str


@dataclass(frozen=True)
class Site:
    """News of a velodrome; `news` continues the velodrome's name."""

    head: str
    news: str
    why: str
    quote: str
    doubt: str
    detail: str


@dataclass(frozen=True)
class Gear:
    head: str
    news: str
    claim: str
    quote: str
    doubt: str
    detail: str


# fmt: off
BREACHES = tuple(Breach(*row) for row in (
    ("a blood-boosting hormone", "I have never held a syringe that was not for a vaccine", "The hormone leaves traces for about two days", "Nobody's grandmother keeps this in the fridge", True, "the explanation changed three times in the course of the proceedings"),
    ("a steroid found in ointments", "My soigneur treated a saddle sore and never read the tube", "The amount was a few billionths of a gram", "It's consistent with an ointment, and with the tail end of something worse", False, "the ointment had been bought in the presence of two witnesses"),
    ("a diuretic used to mask other drugs", "It was in a capsule that was sold as magnesium", "Capsules from the same box were found to be contaminated", "Contamination happens more often than we like and less often than they say", False, "the maker of the capsules admitted an error in its plant"),
    ("testosterone", "I was ill, I was treated, I was badly advised", "An isotope test showed that it did not come from the rider's own body", "The isotopes do not argue", True, "no medical file could be produced"),
    ("irregular blood values", "I slept at altitude for five weeks and my blood went to sleep with me", "The biological passport covers forty-one samples", "One odd value is weather, five are a climate", True, "the expected pattern of altitude was missing"),
    ("a stimulant sold as a slimming aid", "It was in a tea that my mother-in-law brought", "The substance is banned in competition only", "We brewed the tea, and it contained what it should not", False, "the tea had been declared on the form before the race"),
    ("an asthma drug above the limit", "I had an attack at the foot of the climb and took what I needed to breathe", "The limit allows for about sixteen puffs a day", "The dose is the question here, and the urine was concentrated", False, "the rider repeated the values in a supervised trial"),
    ("an experimental muscle drug", "I had to look up how it is spelled", "The drug has not been licensed for people anywhere", "You can't swallow that one by accident", True, "messages to a supplier were found on a telephone"),
    ("three missed tests in a year", "Twice I was at a funeral and once the doorbell was broken", "Three absences within twelve months count as one positive test", "The rules are strict because doors are easy not to open", True, "the third absence could not be explained"),
    ("a transfusion marker", "It's a plasticiser; it's in every bottle on my bike", "The substance leaks out of blood bags and out of drinking bottles", "The level is above bottles and below bags, which is unhelpful", False, "the laboratory could not rule out the bottles"),
    ("growth hormone", "The sample bottle was opened in front of me with a knife", "The test has been redrawn twice since it was introduced", "The chain of custody has a hole of forty minutes", False, "the seal of the sample had not been recorded"),
    ("an amphetamine", "It was a party, it was winter, and I was not racing", "Out of competition the substance is not forbidden", "The clock matters: twelve hours earlier it's a private matter", True, "the party had ended eleven hours before the start"),
    ("a corticoid", "The doctor wrote the note, and the note went to the wrong office", "An exemption had been requested on the day of the race", "An exemption after the fact is an apology, not an exemption", True, "the request was dated after the sample"),
    ("tampering with a sample", "I dropped it. I was nervous. People drop things", "The contents matched no human being", "It was, to be plain, apple juice", True, "the control officer had noted everything by the minute"),
))

SITES = tuple(Site(*row) for row in (
    ("to get roof after {years} years of rain", "is to get a roof", "Training was rained off on a hundred and forty days last year", "We have the fastest wet track in the country", "A roof is a cost that never stops", "The boards will be taken up, numbered and stored in a barn."),
    ("closes over cracks in banking", "has been closed because of cracks in the south banking", "An engineer had put a coin in one and lost it", "You can ride over a crack at sixty; it's the second one that gets you", "It was known for two winters", "The national squad will train abroad for the time being."),
    ("reopens with new boards", "has reopened with a new track of Siberian pine", "The old boards had splinters as long as a hand", "It hums when you're going well and rattles when you aren't", "They forgot about the showers", "Fifty kilometres of timber were laid, nail by nail, in eleven weeks."),
    ("faces demolition for supermarket", "may have to make way for a supermarket", "The lease runs out in spring", "You can buy yoghurt anywhere; you can't ride a wall in many places", "Forty people use it on a good day", "The stand from the nineteen-thirties is listed, the track is not."),
    ("sets record for under-tens", "has so many children on its waiting list that it is opening on Sundays", "A local rider's medal had done what leaflets could not", "They are afraid for one lap and then you can't get them off", "We have two coaches and ninety helmets", "Balance bikes are allowed on the flat part only."),
    ("overspends on heating", "is to be heated to no more than eighteen degrees", "Warm air is fast, and the bill had trebled", "At eighteen degrees, records are safe and so is the budget", "Cold air is a headwind in every direction", "Records have been set at twenty-eight degrees and more."),
    ("chosen for championships", "has been awarded the national track championships", "Two larger towns had withdrawn over costs", "We have no hotel, but everyone here has a sofa", "They will come for four days and leave us the bills", "A second changing room has to be finished first."),
    ("renamed after coach", "will bear the name of the woman who coached there for forty years", "Nine champions had signed a letter", "She taught three generations to turn left", "She would have asked for new tyres instead", "A sponsor that had the old name keeps a board above the bar."),
    ("bans motor-paced races after crash", "will have no more motor-paced races for now", "A pacer's chain had snapped in front of two hundred people", "It's the smell people come for, and the smell will have to wait", "Eighty years without an accident and then a ban", "The motorcycles are older than most of the riders."),
    ("opens to blind riders", "gives two evenings a week to blind riders on tandems", "A teacher had written to ask why not", "You hear the banking before you feel it", "Pilots are harder to find than riders", "Eleven tandems have been bought from a police force."),
    ("loses world record to mismeasured line", "was built ten centimetres short, a surveyor has found", "The painted line had been moved in a refit", "Ten centimetres a lap, you may work it out", "It was the same for everyone", "The federation is checking four national records."),
    ("wins fight with bats", "may be used again in the evening, after a quarrel over bats", "A colony had settled under the home straight", "They do laps too, and better lines", "I'd rather have bats than bike bells", "Lights will be dimmed on the far side until the young have flown."),
    ("hosts 24-hour race for hospital", "was ridden round for twenty-four hours, for the benefit of a hospital", "A former sprinter is a patient there", "At four in the morning you ride with your ears", "My legs have gone home without me", "The winner covered 811 kilometres, with stops for soup."),
))

GEARS = tuple(Gear(*row) for row in (
    ("bans 11-speed hub that shifts itself", "has banned a hub that changes gear without the rider", "the hub saved two watts and every decision", "A gear is a thought, and we want riders to have it", "You can't forbid the future, only postpone it", "Eight teams had ordered it."),
    ("allows disc wheels in crosswinds", "has allowed disc wheels in road races again", "tests in a tunnel showed them to be no more dangerous than deep rims", "It's the rider who steers, or the wind, but seldom the wheel", "Whoever wrote that has not crossed an open bridge", "Below a certain weight of rider they remain forbidden."),
    ("limits handlebar width after crashes", "has set a minimum width for handlebars", "bars had become narrower than hips", "We had bars you could post through a letterbox", "I've ridden thirty-four centimetres since I was a junior", "Stewards will carry a gauge made of wood."),
    ("tests airbag vest", "will let riders wear a vest that inflates in a crash", "the vest opens in sixty milliseconds", "It went off when I sneezed, otherwise I like it", "In a bunch, one airbag is another rider's trampoline", "It weighs four hundred and ninety grams."),
    ("outlaws painted-on sensors", "has outlawed sensors that are painted on the skin", "they tell a team car what a rider has eaten", "I don't want my boss to know when I'm tired", "They'll ban watches next", "Two teams had used them in training for a year."),
    ("rules on sock height", "has fixed the height of socks at half the shin", "higher socks save seconds over an hour", "There is a ruler, it is called the sock ruler, and I studied engineering for this", "At last, a rule that I can see", "Commissaires measured nineteen pairs on the first morning."),
    ("clears tubeless tyres after inquiry", "has cleared tubeless tyres after an inquiry into burst rims", "the bursts had been caused by the wrong tape", "It was the tape, it cost four euros", "Tell that to my collarbone", "Manufacturers must now print the maximum pressure in larger letters."),
    ("to weigh bikes at random", "will weigh bicycles at random, at the finish as well as the start", "one bike had lost three hundred grams on the way", "Water bottles don't evaporate at that rate", "We threw away a pump, is that a crime?", "The lower limit is still 6.8 kilograms."),
    ("scans for hidden motors", "will X-ray every bicycle on the podium", "a retired mechanic had shown how small a motor can be", "We found nothing, and I'd like to go on finding nothing", "Look in the legs, not in the frames", "A scan takes ninety seconds."),
    ("forbids super-tuck descending aids", "has forbidden a knee rest that was sold as a cable guide", "it allowed a rider to sit on the frame", "If a cable guide is padded, it's a chair", "I only ever guided cables with it", "It had been worth four seconds a kilometre on steep descents."),
    ("puts radio silence to vote", "will let riders vote on doing without race radios", "races without an earpiece had been more open", "I'd like to lose by my own mistake for once", "We tell them about oil on the road as well", "In trials, attacks began on average twenty kilometres earlier."),
    ("approves cooling helmet", "has approved a helmet that sprays water", "core temperatures in the heat fell by half a degree", "It feels like being a plant", "It's one more thing to carry up a hill", "The reservoir holds a third of a litre."),
))
# fmt: on

// The templates of the Python device's pages, by the names under which they include each other.
import basePage from "../../templates/device/base.html";
import explorePage from "../../templates/device/explore.html";
import followingPage from "../../templates/device/following.html";
import forYouPage from "../../templates/device/for_you.html";
import freshPage from "../../templates/device/fresh.html";
import historyPage from "../../templates/device/history.html";
import interestsPage from "../../templates/device/interests.html";
import keptPage from "../../templates/device/kept.html";
import latencyPage from "../../templates/device/latency.html";
import namedPage from "../../templates/device/named.html";
import pollsPage from "../../templates/device/polls.html";
import popularPage from "../../templates/device/popular.html";
import privacyPage from "../../templates/device/privacy.html";
import problemPage from "../../templates/device/problem.html";
import requestPage from "../../templates/device/request.html";
import savedPage from "../../templates/device/saved.html";
import searchPage from "../../templates/device/search.html";
import searchesPage from "../../templates/device/searches.html";
import settingsPage from "../../templates/device/settings.html";
import storyPage from "../../templates/device/story.html";
import trainingPage from "../../templates/device/training.html";
import welcomePage from "../../templates/device/welcome.html";
import youPage from "../../templates/device/you.html";
import cardsPart from "../../templates/partials/cards.html";
import deviceTabsPart from "../../templates/partials/device_tabs.html";
import endingsPart from "../../templates/partials/endings.html";
import heldPart from "../../templates/partials/held.html";
import iconsPart from "../../templates/partials/icons.html";
import savedSearchesPart from "../../templates/partials/saved_searches.html";
import todayPart from "../../templates/partials/today.html";
import trafficPart from "../../templates/partials/traffic.html";

export const TEMPLATES: Readonly<Record<string, string>> = {
  "device/base.html": basePage,
  "device/explore.html": explorePage,
  "device/following.html": followingPage,
  "device/for_you.html": forYouPage,
  "device/fresh.html": freshPage,
  "device/history.html": historyPage,
  "device/interests.html": interestsPage,
  "device/kept.html": keptPage,
  "device/latency.html": latencyPage,
  "device/named.html": namedPage,
  "device/polls.html": pollsPage,
  "device/popular.html": popularPage,
  "device/privacy.html": privacyPage,
  "device/problem.html": problemPage,
  "device/request.html": requestPage,
  "device/saved.html": savedPage,
  "device/search.html": searchPage,
  "device/searches.html": searchesPage,
  "device/settings.html": settingsPage,
  "device/story.html": storyPage,
  "device/training.html": trainingPage,
  "device/welcome.html": welcomePage,
  "device/you.html": youPage,
  "partials/cards.html": cardsPart,
  "partials/device_tabs.html": deviceTabsPart,
  "partials/endings.html": endingsPart,
  "partials/held.html": heldPart,
  "partials/icons.html": iconsPart,
  "partials/saved_searches.html": savedSearchesPart,
  "partials/today.html": todayPart,
  "partials/traffic.html": trafficPart,
};

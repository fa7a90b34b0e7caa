// The very migrations of the Python device, in their order: both devices have one schema, and one reads the other's export.
import reading from "../../../device_app/store/migrations/0001_reading.sql";
import leaving from "../../../device_app/store/migrations/0002_leaving.sql";
import synced from "../../../device_app/store/migrations/0003_synced.sql";
import recall from "../../../device_app/store/migrations/0004_recall.sql";
import sums from "../../../device_app/store/migrations/0005_sums.sql";
import searchIndex from "../../../device_app/store/migrations/0006_search_index.sql";
import readingTower from "../../../device_app/store/migrations/0007_reading_tower.sql";
import counting from "../../../device_app/store/migrations/0008_counting.sql";
import viewRounds from "../../../device_app/store/migrations/0009_view_rounds.sql";
import privateParameters from "../../../device_app/store/migrations/0010_private_parameters.sql";
import keyRotations from "../../../device_app/store/migrations/0011_key_rotations.sql";
import reportMeanings from "../../../device_app/store/migrations/0012_report_meanings.sql";
import releaseChain from "../../../device_app/store/migrations/0013_release_chain.sql";
import roundUpload from "../../../device_app/store/migrations/0014_round_upload.sql";
import viewed from "../../../device_app/store/migrations/0015_viewed.sql";
import poolSearch from "../../../device_app/store/migrations/0016_pool_search.sql";
import pictures from "../../../device_app/store/migrations/0017_pictures.sql";
import searches from "../../../device_app/store/search_migrations/0001_searches.sql";
import unfollowed from "../../../device_app/store/search_migrations/0002_unfollowed.sql";

/** What a migration is called in the table of those that were run, and its statements. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

export const MIGRATIONS: readonly Migration[] = [
  { name: "0001_reading", sql: reading },
  { name: "0002_leaving", sql: leaving },
  { name: "0003_synced", sql: synced },
  { name: "0004_recall", sql: recall },
  { name: "0005_sums", sql: sums },
  { name: "0006_search_index", sql: searchIndex },
  { name: "0007_reading_tower", sql: readingTower },
  { name: "0008_counting", sql: counting },
  { name: "0009_view_rounds", sql: viewRounds },
  { name: "0010_private_parameters", sql: privateParameters },
  { name: "0011_key_rotations", sql: keyRotations },
  { name: "0012_report_meanings", sql: reportMeanings },
  { name: "0013_release_chain", sql: releaseChain },
  { name: "0014_round_upload", sql: roundUpload },
  { name: "0015_viewed", sql: viewed },
  { name: "0016_pool_search", sql: poolSearch },
  { name: "0017_pictures", sql: pictures },
];

/** Those of the second view's own store. */
export const SEARCH_MIGRATIONS: readonly Migration[] = [
  { name: "0001_searches", sql: searches },
  { name: "0002_unfollowed", sql: unfollowed },
];

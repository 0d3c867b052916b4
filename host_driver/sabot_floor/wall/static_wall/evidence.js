// The evidence over the floor: every chain of the archive computed again, on demand.
import { followFloor, read, tell } from "/static_wall/common.js";
import { byId, cells, post, put, Refused, say } from "/static/live.js";

const ARCHIVE = document.body.dataset.archive === "true";
const LOOK_MS = 500;

function show(told) {
  byId("check").disabled = told.running;
  if (told.failed) tell(told.failed);
  if (told.running) put(byId("result"), say("checking", { rows: told.rows_so_far }));
  else if (!told.checked) put(byId("result"), say("not_checked"));
  else {
    const { sources, wrong, rows, conflicts, quarantined } = told.checked;
    put(byId("result"), say(wrong ? "checked_wrong" : "checked", { wrong, rows, sources: sources.length }));
    put(byId("apart"), conflicts + quarantined ? say("apart", { conflicts, quarantined }) : "");
    byId("sources").replaceChildren(...sources.map((each) => {
      const row = cells(each.table, each.chain, each.level, each.rows, each.n, each.wrong || say("fits"), each.source);
      row.classList.toggle("outside", Boolean(each.wrong));
      return row;
    }));
  }
  if (told.running) setTimeout(look, LOOK_MS);
}

async function look() {
  const told = await read("/api/evidence");
  if (told) show(told);
}

byId("check").addEventListener("click", async () => {
  tell("");
  try {
    show(await post("/api/evidence/check", {}));
  } catch (error) {
    tell(error instanceof Refused ? error.message : say("failed"));
  }
});
if (ARCHIVE) look();
else {
  byId("check").disabled = true;
  put(byId("result"), say("no_archive"));
}
followFloor("wall", () => {});

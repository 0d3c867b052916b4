// A browser is let in by a one-time token. The token stands behind '#', so it is in no request line and no log.
const message = document.getElementById("message");
const field = document.getElementById("token");

async function enter(token) {
  message.textContent = "";
  try {
    const answer = await fetch("/api/enter", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (answer.ok) {
      location.replace(`${document.body.dataset.home}${location.search}`);
      return;
    }
    const told = await answer.json();
    message.textContent = `${told.message}. ${told.advice}`;
  } catch {
    message.textContent = message.dataset.failed;
  }
}

document.getElementById("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  enter(field.value.trim());
});
function enterByAddress() {
  const given = location.hash.slice(1);
  if (!given) return;
  history.replaceState(null, "", `/enter${location.search}`);
  enter(given);
}

addEventListener("hashchange", enterByAddress);
enterByAddress();

"use strict";
for (const bar of document.querySelectorAll(".copy")) {
  const button = bar.querySelector("button"), said = bar.querySelector("[role=status]");
  const code = document.getElementById(bar.dataset.copies);
  bar.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      said.textContent = "copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      said.textContent = "selected: press Ctrl+C";
    }
  });
}

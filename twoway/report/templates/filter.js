// Shows the rows of a table that have all words of a field, and sorts by the title that is clicked.
{
  const filter = document.getElementById("filter");
  const table = document.querySelector("table.filtered");
  const rows = [...table.tBodies[0].rows];
  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    document.getElementById("count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const compare = (one, other) => {
    const [a, b] = [Number(one), Number(other)];
    return one === "" || other === "" || Number.isNaN(a) || Number.isNaN(b) ? one.localeCompare(other) : a - b;
  };
  [...table.tHead.rows[0].cells].forEach((title, column) => {
    title.style.cursor = "pointer";
    title.addEventListener("click", () => {
      const order = title.ariaSort === "ascending" ? -1 : 1;
      for (const each of table.tHead.rows[0].cells) each.ariaSort = null;
      title.ariaSort = order > 0 ? "ascending" : "descending";
      rows.sort((a, b) => order * compare(value(a, column), value(b, column)));
      table.tBodies[0].append(...rows);
    });
  });
  filter.addEventListener("input", () => {
    show();
    history.replaceState(null, "", filter.value ? `#${encodeURIComponent(filter.value)}` : "#");
  });
  if (!document.getElementById(decodeURIComponent(location.hash.slice(1)).split(":")[0]))
    filter.value = decodeURIComponent(location.hash.slice(1));
  show();
}

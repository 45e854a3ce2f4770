// Elements. Whatever comes from a server goes in as text, never as markup.

/** An element: `h("td", { class: "number" }, "12")`. Attributes that are null are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Puts other children into an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

/** Figures beside one another: pairs of a name and a text. */
export function tiles(pairs) {
  const one = ([name, text, title]) => h("div", { title },
    h("dt", {}, name), h("dd", { class: String(text).length > 6 ? "long" : null }, String(text)));
  return h("dl", { class: "tiles" }, pairs.map(one));
}

/**
 * A table that can be sorted by its heads, and is filled anew every second without losing the focus.
 * Columns are `{ name, value: (row) => sortable, show: (row) => text or element, number: bool }`.
 */
export class Table {
  constructor(caption, columns, sorted = -1) {
    this.columns = columns;
    this.sorted = sorted;
    this.down = true;
    this.rows = [];
    this.heads = columns.map((column, at) => h("th", { class: column.number ? "number" : null, scope: "col" },
      column.value
        ? h("button", { type: "button", onclick: () => this.sort(at), title: "sort by this" }, column.name)
        : column.name));
    this.body = h("tbody");
    this.empty = h("p", { class: "note", hidden: true });
    this.element = h("div", { class: "table" },
      h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, this.heads)), this.body), this.empty);
  }

  sort(at) {
    this.down = this.sorted === at ? !this.down : Boolean(this.columns[at].number);
    this.sorted = at;
    this.draw();
  }

  set(rows, empty = "Nothing to show.") {
    this.rows = rows;
    this.empty.textContent = empty;
    this.draw();
  }

  draw() {
    const column = this.columns[this.sorted];
    const rows = [...this.rows];
    if (column) {
      const order = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
      rows.sort((one, other) => order(column.value(one), column.value(other)) * (this.down ? -1 : 1));
    }
    this.heads.forEach((head, at) => {
      if (at === this.sorted) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const cell = (row, column) => h("td", { class: column.number ? "number" : column.kind ?? null },
      column.show ? column.show(row) : String(column.value(row) ?? ""));
    fill(this.body, rows.map((row) => h("tr", {}, this.columns.map((column) => cell(row, column)))));
    this.empty.hidden = rows.length > 0;
  }
}

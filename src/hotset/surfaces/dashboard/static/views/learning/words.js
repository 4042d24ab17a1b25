// How values of knobs are written.

export const shown = (value) => (value === null || value === undefined ? "default" : typeof value === "object" ? Object.entries(value).map(([name, each]) => `${name} ${shown(each)}`).join(", ") || "nothing" : typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value));

/** A value as a file would have it. */
export const written = (value) => (value !== null && typeof value === "object" ? `{${Object.entries(value).map(([name, each]) => `${name} = ${written(each)}`).join(", ")}}` : typeof value === "string" ? JSON.stringify(value) : String(value));

"use strict";
// Numbers for people: the page's copy of monitor/model/units.py; tests/vectors/units.json keeps them equal.
const ABSENT = "—";
const absent = (value) => value === null || value === undefined;

// Python rounds ties to the even digit, toFixed rounds them up. A tie is a value with exactly one bit more
// than the digits allow; doubling is exact, so no rounding error can look like one.
function fixed(value, digits) {
  const doubled = value * 2 ** (digits + 1);
  if (!Number.isInteger(doubled) || doubled % 2 === 0) return value.toFixed(digits);
  const below = Math.floor(value * 10 ** digits);
  return ((below % 2 === 0 ? below : below + 1) / 10 ** digits).toFixed(digits);
}

function plain(value, digits) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e4) return String(value);
  if (size < 0.001) return value.toExponential(digits - 1).replace(/e([+-])(\d)$/, "e$10$2");
  if (size < 1) return fixed(value, digits);
  return fixed(value, size < 10 ? digits - 1 : size < 100 ? digits - 2 : 0);
}

const percent = (ratio) => (absent(ratio) ? ABSENT : `${fixed(ratio * 100, 0)} %`);
const visible = (ratio) => !absent(ratio) && fixed(ratio * 100, 0) !== "0";
const tenths = (value) => (absent(value) ? ABSENT : fixed(value, 1));
const whole = (value) => (absent(value) ? ABSENT : value.toLocaleString("en"));
const celsius = (value) => (absent(value) ? ABSENT : `${fixed(value, 0)}°`);

function number(value) {
  if (absent(value)) return ABSENT;
  for (const [from, factor, letter] of [[1e12, 1e12, "T"], [1e9, 1e9, "G"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]]) {
    if (Math.abs(value) >= from) return plain(value / factor, 3) + letter;
  }
  return plain(value, 3);
}

function gib(value) {
  if (absent(value)) return ABSENT;
  const amount = value / 2 ** 30;
  return fixed(amount, amount >= 99.95 || Number.isInteger(amount) ? 0 : 1);
}

const of = (used, total) => (absent(used) && absent(total) ? ABSENT : `${gib(used)}/${gib(total)} GiB`);

function rate(value) {
  if (absent(value)) return ABSENT;
  for (const [factor, unit] of [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"]]) {
    if (value >= factor) return `${plain(value / factor, value / factor >= 10 ? 2 : 3)} ${unit}`;
  }
  return `${fixed(value, 0)} B/s`;
}

function watts(value, limit) {
  if (absent(value) && absent(limit)) return ABSENT;
  const used = absent(value) ? ABSENT : fixed(value, 0);
  return absent(limit) ? `${used} W` : `${used}/${fixed(limit, 0)} W`;
}

function hertz(value) {
  if (absent(value)) return ABSENT;
  return value >= 1e9 ? `${fixed(value / 1e9, 2)} GHz` : `${fixed(value / 1e6, 0)} MHz`;
}

function seconds(value) {
  if (absent(value)) return ABSENT;
  if (value === 0) return "0 s";
  if (value < 1e-6) return `${plain(value * 1e9, 3)} ns`;
  if (value < 0.001) return `${plain(value * 1e6, 3)} µs`;
  if (value < 1) return `${plain(value * 1e3, 3)} ms`;
  return value < 100 ? `${plain(value, 3)} s` : duration(value);
}

function duration(value) {
  if (absent(value)) return ABSENT;
  const total = Math.floor(Math.max(0, value));
  const part = (size, within) => Math.floor((total % within) / size);
  const two = (amount) => String(amount).padStart(2, "0");
  if (total < 60) return `${total} s`;
  if (total < 3600) return `${part(60, 3600)} min ${two(part(1, 60))} s`;
  if (total < 86400) return `${part(3600, 86400)} h ${two(part(60, 3600))} min`;
  return `${Math.floor(total / 86400)} d ${part(3600, 86400)} h`;
}

function gainRange(low, likely, high) {
  const digits = likely < 1.5 ? 2 : likely < 9.95 ? 1 : 0;
  return `×${fixed(likely, digits)} (${fixed(low, digits)}–${fixed(high, digits)})`;
}

// Formats numbers, times and states.

const many = new Intl.NumberFormat();

export const number = (value) => many.format(value);

export const count = (value, one, several = `${one}s`) => `${number(value)} ${value === 1 ? one : several}`;

export function duration(seconds) {
  if (seconds < 0.05) return "";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function ago(at, now = Date.now() / 1000) {
  const seconds = Math.max(0, now - at);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(at * 1000).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

export const clock = (at) => new Date(at * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });

export const TIERS = {
  none: "No known risk",
  medium: "Medium risk",
  high: "High risk",
  critical: "Critical: may destroy data",
};

export const STATUSES = {
  waiting: "next",
  asked: "needs approval",
  running: "running",
  ok: "done",
  error: "failed",
  denied: "denied",
  stopped: "stopped",
  unknown: "interrupted",
};

export const ENDINGS = {
  done: "Done",
  unfinished: "Not finished",
  iterations: "Stopped: turn limit reached",
  tokens: "Stopped: token limit reached",
  time: "Stopped: time limit reached",
  person: "Stopped by you",
  denied: "Stopped: denied",
  failed: "Failed",
};

/** Light, dark, or as the system says. */

import { useState } from "preact/hooks";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const KEY = "holdfast-theme";

function stored(): Theme {
  const found = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === found) ?? "system";
}

function apply(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

apply(stored());

export function ThemeButton() {
  const [theme, setTheme] = useState(stored());
  const next = () => {
    const following = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    localStorage.setItem(KEY, following);
    apply(following);
    setTheme(following);
  };
  return <button type="button" class="theme" onClick={next}>Theme: {theme}</button>;
}

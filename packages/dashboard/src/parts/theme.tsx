// Dark or light: as the system says until the reader chooses.

import { useEffect, useState } from 'react';

const name = 'millrace-theme';

export function ThemeButton() {
  const [theme, setTheme] = useState(
    () => localStorage.getItem(name) ?? (matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark'),
  );
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  const other = theme === 'dark' ? 'light' : 'dark';
  const change = () => {
    localStorage.setItem(name, other);
    setTheme(other);
  };
  return (
    <button type="button" className="quiet" onClick={change} aria-label={`Use the ${other} theme`} title={`Use the ${other} theme`}>
      {theme === 'dark' ? '☀' : '☾'}
    </button>
  );
}

"""From a bound plan to one that may be run: text + policy + public facts → Plan. No data, no engine, no chance."""

"""Programs that the TypeScript tests run."""

// Environments from PyPI that several tests share one installation of.

export const gymPackages = { name: 'gym', packages: ['gem-llm==0.1.0', 'skyrl-gym==0.4.0'] };

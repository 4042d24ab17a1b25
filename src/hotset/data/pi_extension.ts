// Passed by `hotset wrap pi`: pi reads no base URL from the environment, this extension does.
export default function (pi: any) {
  const addresses: [string, string | undefined][] = [
    ["openai", process.env.OPENAI_BASE_URL],
    ["anthropic", process.env.ANTHROPIC_BASE_URL],
  ];
  for (const [provider, baseUrl] of addresses) {
    if (baseUrl) pi.registerProvider(provider, { baseUrl });
  }
}

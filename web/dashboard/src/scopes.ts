/** What a token allows, as the server decides it: only what would work is offered. */

/** Whether scopes such as `queue:orders-*:put,claim` allow a verb on a thing. */
export function allows(scopes: readonly string[], kind: "queue" | "dict" | "lease" | "server", name: string, verb: string): boolean {
  return scopes.some((scope) => {
    if (scope === "admin") return true;
    const first = scope.indexOf(":");
    const last = scope.lastIndexOf(":");
    const of = scope.slice(0, first);
    const verbs = scope.slice(last + 1).split(",");
    const isKind = of === kind || (of === "*" && kind !== "server");
    return isKind && verbs.includes(verb) && fits(scope.slice(first + 1, last), name);
  });
}

function fits(pattern: string, name: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^]*")}$`).test(name);
}

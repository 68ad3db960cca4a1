/** Errors of a server, by their stable codes. */

/** What a server answered instead of a result; `code` is for programs, `message` for people. */
export class HoldfastError extends Error {
  readonly code: string;
  readonly status: number;
  readonly fields: Record<string, unknown>;

  constructor(code: string, status: number, detail: string, fields: Record<string, unknown> = {}) {
    super(detail);
    this.name = new.target.name;
    this.code = code;
    this.status = status;
    this.fields = fields;
  }
}

/** A claim is no longer held: another worker may have the message. */
export class ClaimLost extends HoldfastError {}
/** A lease is no longer held: another holder may have it. */
export class LeaseLost extends HoldfastError {}
/** The lease is held by another, and did not become free in time. */
export class LeaseHeld extends HoldfastError {}
/** The events that were asked for are gone: read what is there, and watch from now on. */
export class Compacted extends HoldfastError {}
/** The token may not do this, or there is none. */
export class NotAllowed extends HoldfastError {}
/** The server could not be reached in time; nothing was done. */
export class Unavailable extends HoldfastError {}
/** No answer came in time: it is not known whether the command was done. */
export class OutcomeUnknown extends HoldfastError {}

type Kind = new (code: string, status: number, detail: string, fields?: Record<string, unknown>) => HoldfastError;

const KINDS: Record<string, Kind> = {
  claim_lost: ClaimLost,
  lease_lost: LeaseLost,
  lease_held: LeaseHeld,
  line_full: LeaseHeld,
  compacted: Compacted,
  not_allowed: NotAllowed,
  unauthorized: NotAllowed,
  store_unavailable: Unavailable,
  outcome_unknown: OutcomeUnknown,
};

/** The error that a response describes. */
export async function errorOf(response: Response): Promise<HoldfastError> {
  let problem: { code?: string; detail?: string; fields?: Record<string, unknown> } = {};
  try {
    problem = (await response.json()) as typeof problem;
  } catch {
    // A proxy answered, not the server.
  }
  const code = problem.code ?? `http_${response.status}`;
  const kind = KINDS[code] ?? (response.status === 401 || response.status === 403 ? NotAllowed : HoldfastError);
  return new kind(code, response.status, problem.detail ?? `the server answered ${response.status} ${response.statusText}`, problem.fields);
}

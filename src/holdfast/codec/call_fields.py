"""The valid values of arguments that only handles take: no command has these fields."""

from typing import Final

from holdfast.codec.fields import LIMIT, TOKEN, Flag, Number, Seconds, Whole

TIMEOUT_S: Final = Seconds("timeout_s", optional=True, forever=True)
WAIT_TIMEOUT_S: Final = Seconds("wait_timeout_s", optional=True, forever=True)
POLL_INTERVAL_S: Final = Seconds("poll_interval_s", zero=False, forever=True)
RENEW_INTERVAL_S: Final = Seconds("renew_interval_s", zero=False, optional=True)
MAX_HOLD_S: Final = Seconds("max_hold_s", zero=False, optional=True)
HELD_S: Final = Seconds("lease_s", zero=False)
PLACE_S: Final = Seconds("in_line_s", zero=False)
RENEWED_S: Final = Seconds("lease_s")
RATE_PER_S: Final = Number("rate_per_s")
LAST_INDEX: Final = Whole("last_index", -1, TOKEN.most)
SIZE: Final = Whole("size", 1, LIMIT.most)
AUTO_RENEW: Final = Flag("auto_renew")
ACK_ON_SUCCESS: Final = Flag("ack_on_success")
RELEASE_ON_ERROR: Final = Flag("release_on_error")
STRICT: Final = Flag("strict")
FAIR: Final = Flag("fair")
SNAPSHOT: Final = Flag("snapshot")
MAX_JOBS: Final = Whole("max_jobs", 1, LIMIT.most, optional=True)
UNTIL_EMPTY: Final = Flag("until_empty")
SIGNALS: Final = Flag("signals")
GRACE_S: Final = Seconds("grace_s", optional=True)

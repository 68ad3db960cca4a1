--- What every script begins with: its command, the moment, and what is written at the end of every step.
--
-- Numbers (moments in microseconds, tokens, revisions) are whole and below 2^53, so a double holds them; but `..` would write 1.79e+15,
-- so they become text by `text` alone, and in sorted sets eight bytes that sort as they do.

local call = redis.call

local ALL = 2 ^ 30 -- wakes every waiter of a topic
local NEVER = 2 ^ 62 -- the end of a lease that has none
local LAST = 2 ^ 53 - 1 -- no moment lies behind it
local RETRY_S = 120 -- how long somebody may repeat a command, so how long its answer and its events are kept at least
local RETAINED_S = 86400
local RETAINED = 100000
local TIDY = 100 -- about one step in so many tidies up a little
local CHUNK = 4000 -- arguments to one call: `unpack` fails at about 8,000; even, because some come in pairs
local AFTER_ALL = "\255" -- sorts behind whatever follows: no text has this byte

-- How members of sorted sets begin, for `struct`: see queue.lua.
local READY = ">I4I8I8" -- priority from the top, position, n
local MOMENT = ">I8I8" -- a moment, n
local NUMBER = ">I8"
local TOP = 2 ^ 31 - 1 -- the highest priority

local store = KEYS[1]
local command, command_id = cmsgpack.unpack(ARGV[1]), ARGV[2]
local answer_key = (KEYS[2] or store) .. ":answer:" .. command_id
local counter_key, moved_key = store .. ":counter", store .. ":moved"

local now
if ARGV[3] == "" then
  local time = call("TIME")
  now = time[1] * 1000000 + time[2]
else
  -- A test owns its clock. Its threads may arrive in another order than they looked at it.
  now = math.max(tonumber(ARGV[3]), tonumber(call("GET", store .. ":clock") or 0))
  call("SET", store .. ":clock", string.format("%.0f", now))
end
local wall_offset = tonumber(ARGV[4]) or 0

--- A whole number as text.
local function text(number)
  return string.format("%.0f", number)
end

--- Write one event to the log of an object: a stream whose ids are the events' numbers.
local function write_event(key, number, event, data)
  call("XADD", key .. ":events", text(number) .. "-0", "event", event, "at", text(now), "data", cmsgpack.pack(data))
end

--- Tell those who wait on topics, each with how many may find something. Whether anybody does is asked first: a hint that nobody hears
-- would still go to every replica.
--
-- Never fails the step, which is written: a user who may not publish is left with polling.
local function give_hints(topics, counts)
  for first = 1, #topics, CHUNK do
    local channels = {}
    for i = first, math.min(first + CHUNK - 1, #topics) do
      channels[#channels + 1] = store .. ":wake:" .. topics[i]
    end
    local heard = redis.pcall("PUBSUB", "NUMSUB", unpack(channels))
    for i, channel in ipairs(channels) do
      if not heard.err and heard[2 * i] > 0 then
        redis.pcall("PUBLISH", channel, text(counts[first + i - 1]))
      end
    end
  end
end

--- Keep what answers the command if it is repeated; false where it is a repetition itself.
local function keep_answer(note)
  return command_id == "" or call("SET", answer_key, note, "NX", "EX", RETRY_S) ~= false
end

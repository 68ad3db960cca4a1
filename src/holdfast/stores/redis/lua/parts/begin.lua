--- What every script begins with: its command, the moment, and what is written at the end of every step.
--
-- Numbers (moments in microseconds, tokens, revisions) are whole and below 2^53, so a double holds them; but `..` would write 1.79e+15,
-- so they become text by `text` alone, and in sorted sets eight bytes that sort as they do. What is known beforehand is given to `call`
-- as text: it makes it of a number by the longest way.

local call = redis.call

local ALL = {{ALL}} -- wakes every waiter of a topic
local NEVER = {{NEVER}} -- the end of a lease that has none
local LAST = {{LAST}} -- no moment lies behind it
local RETRY_S = "{{RETRY_S}}" -- how long somebody may repeat a command, so how long its answer and its events are kept at least
local RETAINED_S = {{RETAINED_S}}
local LOG_S = 2 * RETAINED_S -- how long the log of a taken lease outlasts it: a day longer than need be, so that not every renewal says so
local RETAINED = {{RETAINED}}
local TIDY = 100 -- about one step in so many tidies up a little
local CHUNK = 4000 -- arguments to one call: `unpack` fails at about 8,000; even, because some come in pairs
local ANSWER_BYTES = {{ANSWER_BYTES}} -- how much one answer brings
local FEW = 8 -- so many of anything are less than that
local MOST = 1000 -- so many of anything a fast path takes: their arguments fit into one call
local AFTER_ALL = "\255" -- sorts behind whatever follows: no text has this byte

-- How members of sorted sets begin, for `struct`: see messages.lua.
local READY = ">I4I8I8" -- priority from the top, position, n
local LINE = ">I4I8" -- of these the first two
local MOMENT = ">I8I8" -- a moment, n
local NUMBER = ">I8"
local POSITION_AT, READY_N_AT, READY_ID_AT, MOMENT_ID_AT = 5, 13, 21, 17 -- where these are in READY and MOMENT, and the id behind them
local TOP = {{TOP}} -- the highest priority

-- What is packed piece by piece, since a table for it would cost more, begins with its kind.
local TRUE, MAP_OF_1, MAP_OF_2, MAP_OF_3 = "\195", "\129", "\130", "\131"

local store = KEYS[1]
local command, command_id = cmsgpack.unpack(ARGV[1]), ARGV[2]
local answer_key = (KEYS[2] or store) .. ":answer:" .. command_id
local counter_key, moved_key = store .. ":numbers", store .. ":moved"

-- The store's clock is the server's, which may be set back, and from then on as much ahead of it as keeps it from going back.
local TICK = 10000 -- so far the highest moment that is known to all may lag behind
local seen_key, ahead_key = store .. ":seen", store .. ":ahead"
local seen, ahead = 0, 0

local now, time
if not ARGV[3] then
  time = call("TIME")
  now = time[1] * 1000000 + time[2]
  local known = call("MGET", seen_key, ahead_key)
  seen, ahead = tonumber(known[1] or 0), tonumber(known[2] or 0)
  if now + ahead < seen then
    ahead = seen - now
    redis.pcall("SET", ahead_key, string.format("%.0f", ahead)) -- Never fails the step: a server without room can still be read.
  end
  if ahead > 0 then
    now, time = now + ahead, nil
  end
else
  -- A test owns its clock. Its threads may arrive in another order than they looked at it.
  now = math.max(tonumber(ARGV[3]), tonumber(call("GET", store .. ":clock") or 0))
  call("SET", store .. ":clock", string.format("%.0f", now))
end
local wall_offset = tonumber(ARGV[4]) or -ahead

--- A whole number as text. Nearly always it is the moment, whose digits the server gave.
local function text(number)
  if time and number == now then
    return time[1] .. string.sub("000000" .. time[2], -6)
  end
  return string.format("%.0f", number)
end

--- Whether numbering leapt over it, when the server was started (started.lua) or when numbers of elsewhere came (beginimport.lua).
local function was_skipped(number)
  local behind = call("ZRANGEBYSCORE", store .. ":gaps", "(" .. text(number), "+inf", "LIMIT", "0", "1")[1]
  return behind and tonumber(behind) < number
end

--- Write one event to the log of an object: a stream whose ids are the events' numbers, given as text; its facts are packed.
--
-- A number is nearly always the moment itself; only another one says when it was. Later steps are let know the moment of this one.
local function write_event(key, number, id, event, data)
  if not ARGV[3] and now >= seen + TICK then
    call("SET", seen_key, text(now))
  end
  if number == now then
    call("XADD", key .. ":events", id, "event", event, "data", data)
  else
    call("XADD", key .. ":events", id, "event", event, "data", data, "at", text(now))
  end
end

local WAKE = store .. ":wake:" -- and a topic: where those who wait on it listen

--- Tell those who listen on channels, each with how many may find something. Whether anybody does is asked first: a hint that nobody hears
-- would still go to every replica.
--
-- Never fails the step, which is written: a user who may not publish is left with polling.
local function give_hints(channels, counts)
  for first = 1, #channels, CHUNK do
    local heard = redis.pcall("PUBSUB", "NUMSUB", unpack(channels, first, math.min(first + CHUNK - 1, #channels)))
    for i = 2, heard.err and 0 or #heard, 2 do
      if heard[i] > 0 then
        redis.pcall("PUBLISH", heard[i - 1], text(counts[first + i / 2 - 1]))
      end
    end
  end
end

--- Keep what answers the command if it is repeated; false where it is a repetition itself.
local function keep_answer(note)
  return command_id == "" or call("SET", answer_key, note, "NX", "EX", RETRY_S) ~= false
end

--- One step on the store: the moment it happens, the numbers it gives out, the events it tells of and the waiters it wakes.
--
-- A script that fails keeps what it wrote until then. So a step only reads and works things out, and `finish` (at the end of run.lua)
-- carries all of it out at once, with commands that cannot fail for reasons of meaning.
--
-- Numbers (moments in microseconds, tokens, revisions) are whole and below 2^53, so a double holds them; but `..` would write 1.79e+15,
-- so they become text by `text` and `digits` alone.

local call = redis.call

local ALL = 2 ^ 30 -- wakes every waiter of a topic
local NEVER = 2 ^ 62 -- the end of a lease that has none
local LAST = 2 ^ 53 - 1 -- the largest number that we write in digits, where it stands for NEVER
local RETRY_S = 120 -- how long somebody may repeat a command, so how long its answer and its events are kept at least
local RETAINED_S = 86400
local RETAINED = 100000
local AFTER_ALL = "\255" -- sorts behind whatever follows: no text has this byte
local CHUNK = 4000 -- arguments to one call: `unpack` fails at about 8,000; even, because some come in pairs

local store = KEYS[1]

local function clock()
  local time = call("TIME")
  return time[1] * 1000000 + time[2]
end

--- The moment that a test, which owns its clock, says it is. Its threads may arrive in another order than they looked at the clock.
local function given_moment(moment)
  local latest = math.max(moment, tonumber(call("GET", store .. ":clock") or 0))
  call("SET", store .. ":clock", string.format("%.0f", latest))
  return latest
end

local now = ARGV[3] ~= "" and given_moment(tonumber(ARGV[3])) or clock()
local wall_offset = tonumber(ARGV[4]) or 0

--- A whole number as text.
local function text(number)
  return string.format("%.0f", number)
end

--- A moment or a number so that text sorts as numbers do.
local function digits(number)
  return string.format("%016.0f", number >= NEVER and LAST or number)
end

--- Call a command on one key with as many arguments as there are.
local function call_with(command, key, arguments)
  for first = 1, #arguments, CHUNK do
    call(command, key, unpack(arguments, first, math.min(first + CHUNK - 1, #arguments)))
  end
end

--- The fields of a hash, false where there is none.
local function fields_of(key, names)
  if #names <= CHUNK then
    return #names > 0 and call("HMGET", key, unpack(names)) or {}
  end
  local found = {}
  for first = 1, #names, CHUNK do
    for _, value in ipairs(call("HMGET", key, unpack(names, first, math.min(first + CHUNK - 1, #names)))) do
      found[#found + 1] = value
    end
  end
  return found
end

local numbers = { key = store .. ":counter", last = nil, drawn = false }

--- The newest number that was given out.
function numbers.latest()
  numbers.last = numbers.last or tonumber(call("GET", numbers.key) or 0)
  return numbers.last
end

--- Draw consecutive numbers; answer the first.
--
-- Never behind the clock: should the server come back without its latest writes (a replica took over, a backup was restored), the
-- numbers it gives out are still larger than those it forgot.
function numbers.draw(count)
  local first = math.max(numbers.latest() + 1, now)
  numbers.last, numbers.drawn = first + count - 1, true
  return first
end

local hints = { topics = {}, counts = {} }

--- Hint to waiters of a topic, once the step is written.
local function wake(topic, count)
  if not hints.counts[topic] then
    hints.topics[#hints.topics + 1] = topic
  end
  hints.counts[topic] = math.min(ALL, (hints.counts[topic] or 0) + count)
end

local events = {}

--- Tell of something that happened to an object; answer the event's number.
local function tell(object, event, data)
  local number = numbers.draw(1)
  events[#events + 1] = { object = object, number = number, event = event, data = data }
  wake("watch:" .. object.topic, ALL)
  return number
end

--- Refuse the whole step; nothing was written.
local function refuse(error_name, facts)
  error({ refused = error_name, facts = facts }, 0)
end

--- The key of an object: all else that belongs to it lies under this key and a colon, in the one slot that the braces name.
--
-- Escaped, a name has no braces of its own, so two objects never share a key.
local function key_of(kind, name)
  local escaped = string.gsub(name, "[%%{}]", function(character)
    return string.format("%%%02X", string.byte(character))
  end)
  return store .. ":{" .. kind .. ":" .. escaped .. "}"
end

local commands = {} -- by name: what each can do, `check` and `write` first
local writers = {} -- functions that write what a part of the step has worked out

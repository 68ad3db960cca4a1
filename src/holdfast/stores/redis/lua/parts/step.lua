--- One step on the store: the numbers it gives out, the events it tells of and the waiters it wakes.
--
-- A script that fails keeps what it wrote until then. So a step only reads and works things out, and `finish` (in run.lua) carries all of
-- it out at once, with commands that cannot fail for reasons of meaning.
-- @include begin

--- A number as eight bytes that sort as numbers do.
local function sortable(number)
  return struct.pack(NUMBER, number)
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

local numbers = { last = nil, drawn = false }

--- The newest number that was given out.
function numbers.latest()
  numbers.last = numbers.last or tonumber(call("GET", counter_key) or 0)
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

local hints = { channels = {}, counts = {}, place = {} }

--- Hint to waiters of a topic, once the step is written.
local function wake(topic, count)
  local place = hints.place[topic]
  if not place then
    place = #hints.channels + 1
    hints.place[topic], hints.channels[place], hints.counts[place] = place, WAKE .. topic, 0
  end
  hints.counts[place] = math.min(ALL, hints.counts[place] + count)
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

local answered = 0 -- how much the answer brings so far

--- Bring so much more if the answer takes it, which it does of the first thing; answer whether.
local function bring(size)
  if answered > 0 and answered + size > ANSWER_BYTES then
    return false
  end
  answered = answered + size
  return true
end

--- Refuse a step that brings too much, or whose next part finds no room.
local function refuse_answer()
  refuse("AnswerTooLarge", {})
end

local PORTION = 1024 * 1024 -- how much is read at a time of what may be too much

--- Call `read` with the names of a few fields of a hash at a time, until it answers false; answer whether it never did.
--
-- The size of each, with that of the field under its name and a suffix, is noted in `sizes`.
local function in_portions(key, names, suffix, sizes, read)
  local portion, size = {}, 0
  for i, name in ipairs(names) do
    portion[#portion + 1] = name
    sizes[name] = sizes[name] or call("HSTRLEN", key, name) + (suffix and call("HSTRLEN", key, name .. suffix) or 0)
    size = size + sizes[name]
    if size > PORTION or i == #names then
      if read(portion) == false then
        return false
      end
      portion, size = {}, 0
    end
  end
  return true
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

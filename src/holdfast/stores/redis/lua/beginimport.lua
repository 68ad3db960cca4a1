--- BeginImport: make the store the target of a copy, or go on with one that was interrupted.
--
-- KEYS  1 the store
-- ARGV  1 the command: source, now, latest and next_n of the source, merge, lost
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers what is remembered of the copy: source, offset, base, place, messages, entries, checksum.
-- @include copying

local begin_import = {}

local function is_empty()
  return call("ZCARD", store .. ":queues") == 0 and call("ZCARD", store .. ":dicts") == 0 and #all_held(1) == 0
end

function begin_import.check(command)
  local running = running_copy()
  if running then
    if running.source ~= command.source then
      refuse("OtherCopy", { running = running.source, wanted = command.source })
    end
    return { copy = running }
  end
  local was_empty = is_empty()
  if not was_empty and not command.merge then
    refuse("NotEmpty", { store = store })
  end
  local copy = {
    source = command.source,
    offset = now - command.now,
    base = was_empty and 0 or next_n(),
    place = "",
    messages = 0,
    entries = 0,
    checksum = "",
  }
  return { copy = copy, is_new = true }
end

function begin_import.write(command, plan)
  local copy = plan.copy
  if plan.is_new then
    -- Messages are numbered from the same counter.
    local number = math.max(command.latest + 1, copy.base + command.next_n, numbers.latest() + 1)
    if command.lost then
      call("ZADD", store .. ":gaps", text(number), text(numbers.latest()))
    end
    numbers.last, numbers.drawn = number, true
    call("SET", store .. ":floor", text(number))
    call("SET", COPYING, cmsgpack.pack(copy))
  end
  return copy
end

commands.BeginImport = begin_import

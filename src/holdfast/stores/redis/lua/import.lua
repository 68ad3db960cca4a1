--- Import: take a page of a copy in, as it is to be here; a page that came before changes nothing.
--
-- KEYS  1 the store  2… the queues and dicts of the page
-- ARGV  1 the command: source, after, place, checksum,
--         settings {kind, name, paused, maxsize, created_at, policy, tat, last, throttled_until}, lanes {queue, name, tat, last,
--         throttled_until, own}, messages as they are kept, with queue and value,
--         fences {dict, key, fence}, entries {dict, key, value, revision, fence, expires_at}
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers what is remembered of the copy.
-- @include copying

local import = {}

--- Refuse what is here already; only where the copy is merged with something can anything be.
local function refuse_taken(command)
  for _, message in ipairs(command.messages) do
    local queue = open_queue(message.queue)
    load_messages(queue, { message.id })
    if queue.messages[message.id] then
      refuse("BothHave", { what = "message " .. message.id .. " of queue '" .. message.queue .. "'" })
    end
    if message.key and message.state ~= "dead" then
      load_keys(queue, { message.key })
      if (message.state == "buffered" and copy_of or live_of)(queue, message.key) then
        refuse("BothHave", { what = "key " .. message.key .. " of queue '" .. message.queue .. "'" })
      end
    end
  end
  for _, entry in ipairs(command.entries) do
    if entry_of(open_dict(entry.dict), entry.key) then
      refuse("BothHave", { what = "key " .. entry.key .. " of dict '" .. entry.dict .. "'" })
    end
  end
end

function import.check(command)
  local running = running_copy()
  if not running or running.source ~= command.source then
    refuse("NoCopy", { source = command.source })
  end
  if running.place == command.place then
    return { copy = running, is_done = true }
  end
  if running.place ~= command.after then
    refuse("OtherPlace", { source = command.source, place = running.place, after = command.after })
  end
  refuse_taken(command)
  return { copy = running }
end

local function configure(settings)
  local object = settings.kind == "queue" and open_queue(settings.name) or open_dict(settings.name)
  if not settings_of(object) then
    object.settings = {
      created_at = settings.created_at or 0,
      paused = settings.paused or false,
      maxsize = settings.maxsize,
      policy = settings.policy,
      live = 0,
      tat = settings.tat or 0,
      last = settings.last or 0,
      throttled_until = settings.throttled_until or 0,
    }
    object.settings.ruled = ruled_by(object.settings)
    object.is_configured = true
    keep_log(object)
  end
end

--- Let a message stand where the policies of its queue here say; one that is claimed counts under its limits.
local function place(queue, message)
  local policy, found = policy_of(queue), rules_of(queue)
  local has_lanes = found and settings_of(queue).ruled == "lanes"
  if not (policy.groups == "strict" and (not message.state or message.state == "leased")) then
    message.lane, message.level, message.rank = nil, nil, nil
  end
  if message.state == "buffered" and has_lanes then
    message.lane = policy.groups and message.group or ""
  elseif message.state == "leased" and has_lanes then
    found.line_up(queue, message)
  end
  if message.state == "leased" and found then
    found.count_claim(queue, message)
  end
end

local function adopt(message)
  local queue = open_queue(message.queue)
  queue.values[message.id] = message.value
  message.queue, message.value = nil, nil
  place(queue, message)
  add(queue, message)
end

--- Take a lane in: its settings, rate and throttle; the rest follows from its messages.
local function adopt_lane(one)
  local queue, found = open_queue(one.queue), load_rules()
  local lane = found.lane(queue, one.name)
  lane.own, lane.tat, lane.last, lane.throttled_until = one.own or lane.own, one.tat or 0, one.last or 0, one.throttled_until or 0
  found.lanes.save(queue.key, { lane })
  found.touch(queue, one.name, 0)
end

local function enter(entry)
  local dict = open_dict(entry.dict)
  if entry.fence then
    raise_fence(dict, entry.key, entry.fence)
  end
  entry.dict = nil
  save_entry(dict, entry.key, entry)
end

function import.write(command, plan)
  local copy = plan.copy
  if plan.is_done then
    return copy
  end
  for _, settings in ipairs(command.settings) do
    configure(settings)
  end
  copy.messages, copy.entries = copy.messages + #command.messages, copy.entries + #command.entries
  for _, message in ipairs(command.messages) do
    adopt(message)
  end
  for _, one in ipairs(command.lanes or {}) do
    adopt_lane(one)
  end
  for _, one in ipairs(command.fences) do
    local dict = open_dict(one[1])
    keep_log(dict)
    raise_fence(dict, one[2], one[3])
  end
  for _, entry in ipairs(command.entries) do
    enter(entry)
  end
  copy.place, copy.checksum = command.place, command.checksum
  call("SET", COPYING, cmsgpack.pack(copy))
  return copy
end

commands.Import = import

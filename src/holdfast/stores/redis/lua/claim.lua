--- Claim: lease what is due, or with `take` remove it; what others let expire comes back in the same step.
--
-- KEYS  1 the store  2 the queue
-- ARGV  1 the command: queue, holder, limit and, where it is not the default, lease (none: as the queue says, else without end), by_policy,
--         key, take, expired_to, max_attempts, dead_letter
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers messages and their values, or, when that is nothing, due_in: when time alone will make something claimable.
-- @include endings

local claim = {}

local SWEEP = {{SWEEP}} -- how many ended leases a claim looks after beyond as many as it may hand out

--- The line as a claim of one key sees it: at most one message long.
local function key_line(queue, key)
  load_keys(queue, { key })
  local message = live_of(queue, key)
  if not message then
    return {}, {}
  end
  if is_late(message) or (message.state == "leased" and not is_held(message)) then
    return {}, { message }
  end
  return state_of(message) == "ready" and message.position <= now and { message } or {}, {}
end

--- When time alone will make the message under a key claimable.
local function key_due(queue, key)
  local message = live_of(queue, key)
  local due = message and (message.state == "leased" and message["until"] or message.position)
  return due and due < NEVER and due or nil
end

local function due_in(queue, key, swept, limit)
  if swept >= limit + SWEEP then
    -- More ended than one claim looks after, and all it saw was buried: ask again at once.
    return 0
  end
  local due
  if key then
    due = key_due(queue, key)
  else
    due = next_due(queue)
  end
  return due and math.max(0, due - now)
end

local function claims_before(one, other)
  local priority, other_priority = one.priority or 0, other.priority or 0
  if priority ~= other_priority then
    return priority > other_priority
  end
  return one.position < other.position or (one.position == other.position and one.n < other.n)
end

--- The first in line, among them what this very step puts back into it, each as it will stand.
local function choose(endings, line, limit)
  local standing_at = {}
  for _, message in ipairs(line) do
    standing_at[#standing_at + 1] = { message = message, priority = message.priority, position = message.position, n = message.n }
  end
  for _, one in ipairs(endings.back) do
    local message = one.message
    standing_at[#standing_at + 1] = { message = message, priority = message.priority, position = one.position, n = message.n }
  end
  for _, key in ipairs(endings.keys) do
    local copy = copy_of(endings.queue, key)
    if copy then
      standing_at[#standing_at + 1] = { message = copy, priority = copy.priority, position = copy.position, n = copy.n, is_copy = true }
    end
  end
  table.sort(standing_at, claims_before)
  local chosen = {}
  for _, one in ipairs(standing_at) do
    local late = one.is_copy and one.message.start_by and one.message.start_by <= now
    if #chosen < limit and one.position <= now and not late then
      chosen[#chosen + 1] = one.message
    end
  end
  return chosen
end

--- What becomes of leases that have ended.
local function expire(command, queue, expired)
  local endings, behind = plan_endings(queue, expired), {}
  for _, message in ipairs(expired) do
    if message.expired_to == "front" then
      behind[message.priority or 0] = (behind[message.priority or 0] or 0) + 1
    end
  end
  for _, message in ipairs(expired) do
    -- Those that go to the front stand there in order of lease end, which is the order they come in.
    local before = 0
    if message.expired_to == "front" then
      before = behind[message.priority or 0] - 1
      behind[message.priority or 0] = before
    end
    local ended_at = message["until"]
    local ending = ending_of(message, ended_at, "expired")
    if is_spent(message, (message.failures or 0) + 1, command, policy_of(queue)) then
      plan_burial(endings, message, message.dead_letter or command.dead_letter or policy_of(queue).dead_letter, ending, true)
    else
      local position = position_after(endings, message, message.expired_to or "place", ended_at, 0)
      plan_release(endings, message, position - before, ending, true)
    end
  end
  return endings
end

--- Leave to the next claims, as they are, those that go to the front and are next in line: put in line now, they would stand behind what
-- later claims collect and send to the front, too.
local function leave_next(plan)
  local is_chosen, least, left = {}, TOP, {}
  for _, message in ipairs(plan.chosen) do
    is_chosen[message], least = true, math.min(least, message.priority or 0)
  end
  local back, expired = {}, {}
  for _, one in ipairs(plan.endings.back) do
    local message = one.message
    left[message] = message.expired_to == "front" and (message.priority or 0) >= least and not is_chosen[message]
    if not left[message] then
      back[#back + 1] = one
    end
  end
  for _, message in ipairs(plan.expired) do
    if not left[message] then
      expired[#expired + 1] = message
    end
  end
  plan.endings.back, plan.expired = back, expired
end

--- When a claim ends.
local function end_of_claim(command, queue)
  local lease_s = (command.by_policy or not command.lease) and policy_of(queue).lease_s
  local lease = lease_s and micros(lease_s) or command.lease
  return lease and now + lease or NEVER
end

function claim.check(command)
  local queue = open_queue(command.queue)
  local settings = settings_of(queue)
  if settings and settings.ruled then
    return { is_ruled = true } -- It chooses when it writes: see ruled_claim.lua.
  end
  if not settings or settings.paused then
    return { chosen = {} }
  end
  local line, swept
  if command.key then
    line, swept = key_line(queue, command.key)
  else
    swept = overdue(queue, command.limit + SWEEP)
    line = heads(queue, command.limit)
  end
  if #swept == 0 and #line > 0 then
    return { chosen = fitting(queue, line) }
  end
  local plan = { expired = {}, late = {} }
  for _, message in ipairs(swept) do
    table.insert(message.state == "leased" and plan.expired or plan.late, message)
  end
  plan.endings = expire(command, queue, plan.expired)
  plan.chosen = fitting(queue, choose(plan.endings, line, command.limit))
  if #plan.chosen == 0 then
    plan.due_in = due_in(queue, command.key, #swept, command.limit)
  else
    leave_next(plan)
  end
  return plan
end

--- A message as it is now, whatever becomes of it.
local function copied(message)
  local copy = {}
  for field, value in pairs(message) do
    copy[field] = value
  end
  return copy
end

--- Remove messages, and let the copies behind them take their place.
local function remove_and_promote(queue, messages)
  remove(queue, messages)
  promote(queue, keys_of(messages))
end

--- Remove those that were not started in time, or bury them where the queue says so.
local function end_late(command, queue, late)
  tell(queue, "expired", told(late, { started = false }))
  if policy_of(queue).late_to == "dead" then
    local endings = plan_endings(queue, late)
    endings.holds_nobody = true
    for _, message in ipairs(late) do
      plan_burial(endings, message, message.dead_letter or command.dead_letter or policy_of(queue).dead_letter, ending_of(message, now, "late"), false)
    end
    end_claims(endings)()
  else
    remove_and_promote(queue, late)
  end
  make_room(queue, #late)
end

local function write_sweep(command, queue, plan)
  if plan.expired and #plan.expired > 0 then
    local tell_burials = end_claims(plan.endings)
    tell(queue, "expired", told(plan.expired))
    tell_burials()
  end
  if plan.late and #plan.late > 0 then
    end_late(command, queue, plan.late)
  end
end

--- What a claim on a queue with policies needs, made where there is one.
local function ruled_claims()
  local ruled = {}
  -- @include ruled_claim
  return ruled
end

function claim.write(command, plan)
  local queue = open_queue(command.queue)
  if plan.is_ruled then
    return ruled_claims().write(command, queue)
  end
  write_sweep(command, queue, plan)
  if #plan.chosen == 0 then
    return { messages = {}, values = {}, due_in = plan.due_in }, { ids = {} }
  end
  local values = values_of(queue, plan.chosen)
  local token = tell(queue, "claimed", told(plan.chosen, { holder = command.holder }))
  for _, message in ipairs(plan.chosen) do
    change_state(queue, message, "leased")
    message.holder, message.token, message.since = command.holder, token, now
    message["until"] = end_of_claim(command, queue)
    message.expired_to = command.expired_to
    message.attempts = (message.attempts or 0) + 1
    message.tied = message.group and {{TOLD_GROUP}} or nil
  end
  make_room(queue, #plan.chosen)
  if not command.take then
    return { messages = plan.chosen, values = values }, { token = token, ids = ids_of(plan.chosen) }
  end
  local taken = {}
  for i, message in ipairs(plan.chosen) do
    taken[i] = copied(message)
  end
  remove_and_promote(queue, plan.chosen)
  return { messages = taken, values = values }
end

--- When a claim that found nothing may find something, of those it could find now at once.
local function due_again(command, queue)
  local settings = settings_of(queue)
  if not settings or settings.paused then
    return nil
  elseif settings.ruled then
    return 0
  end
  local line, swept
  if command.key then
    line, swept = key_line(queue, command.key)
  else
    line, swept = heads(queue, 1), overdue(queue, 1)
  end
  return #line + #swept > 0 and 0 or due_in(queue, command.key, 0, command.limit)
end

--- The same messages again, but for those that the claim no longer holds.
--
-- Their ids and token are enough to read them again; only of what was taken, and so is gone, the note is the answer itself.
function claim.recall(command, note)
  if command.take and note.messages then
    return note
  end
  local queue, held = open_queue(command.queue), {}
  if #note.ids == 0 then
    return { messages = {}, values = {}, due_in = due_again(command, queue) }
  end
  for _, message in ipairs(pick(queue, note.ids)) do
    if is_held(message) and message.token == note.token then
      held[#held + 1] = message
    end
  end
  return { messages = held, values = values_of(queue, held) }
end

commands.Claim = claim

--- Settle: end claims. Acknowledge, release, fail, snooze and dead-letter are this one command.
--
-- KEYS  1 the store  2… the queues of the receipts
-- ARGV  1 the command: queues (one, or one each), ids, tokens, to, return_to, delay, error, counts, max_attempts,
--         dead_letter, all_or_none, unstarted, trace
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers held, a flag each, or true: all were.
-- @include claims
-- @include endings

local settle = {}

--- How long after a failure the queue says that a message waits: it doubles with each.
local function delay_after(command, message, policy)
  if not (command.counts and policy.backoff) then
    return 0
  end
  local doublings = math.min(message.failures or 0, {{BACKOFF_DOUBLINGS}})
  return math.min(micros(policy.backoff.first_s) * 2 ^ doublings, micros(policy.backoff.most_s))
end

--- What will become of the claims of one queue.
local function plan_end(command, group)
  local endings, policy = plan_endings(group.queue, group.messages), policy_of(group.queue)
  endings.trace = command.trace
  for _, message in ipairs(group.messages) do
    if command.to == "dead" or (command.counts and is_spent(message, (message.failures or 0) + 1, command, policy)) then
      local ending = ending_of(message, now, "buried", command.error)
      plan_burial(endings, message, message.dead_letter or command.dead_letter or policy.dead_letter, ending, command.counts)
    else
      local ending = ending_of(message, now, command.counts and "failed" or "released", command.error)
      local position = position_after(endings, message, command.return_to, now, command.delay or delay_after(command, message, policy))
      plan_release(endings, message, position, ending, command.counts)
    end
  end
  return endings
end

--- Remove what is done, but for what is kept for a while.
local function finish_done(command, group)
  local gone, kept = {}, {}
  for _, message in ipairs(group.messages) do
    table.insert(message.tied and bit.band(message.tied, {{KEPT_WHEN_DONE}}) > 0 and kept or gone, message)
  end
  remove(group.queue, gone)
  if #kept > 0 then
    load_rules().keep_done(group.queue, kept, command.trace)
  end
end

function settle.check(command)
  local held = held_by(command)
  local plan = { held = held, groups = by_queue(command, held), endings = {} }
  if command.to ~= "done" then
    for i, group in ipairs(plan.groups) do
      plan.endings[i] = plan_end(command, group)
    end
  end
  return plan
end

function settle.write(command, plan)
  local later = {}
  for _, group in ipairs(plan.groups) do
    if command.unstarted and next(policy_of(group.queue)) then
      load_rules().give_back(group.queue, group.messages)
    end
    tell(group.queue, "settled", told(group.messages, { to = command.to, failed = command.counts and command.to ~= "done" or nil }))
  end
  for i, endings in ipairs(plan.endings) do
    later[i] = end_claims(endings)
  end
  for _, tell_burials in ipairs(later) do
    tell_burials()
  end
  if command.to == "done" then
    for _, group in ipairs(plan.groups) do
      finish_done(command, group)
      promote(group.queue, keys_of(group.messages))
    end
  end
  return flags(plan.held)
end

commands.Settle = settle

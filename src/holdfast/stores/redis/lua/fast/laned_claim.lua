--- Fast claim on a queue with groups, in the order of puts: no limit, rate or history of the queue as a whole, and time has overtaken nobody.
-- It is part of fast/claim.lua. Where it ends without an answer, nothing is written.
-- @include lanes

repeat
  local found = call("HMGET", queue, "ruled", "stopped", "policy", "throttled_until")
  local policy = found[3] and cmsgpack.unpack(found[3]) or {}
  local is_gated = policy.limit or policy.rate or policy.keep_done_s or (found[4] or "0") ~= "0"
  if known[2] or settings[1] or found[2] ~= "0" or token % TIDY == 0 or limit > MOST or command.take then
    break
  elseif not policy.groups or is_gated or policy.order or policy.aging_s then
    break
  end
  local names = call("ZRANGE", queue .. ":open", "0", limit == 1 and "0" or limit - 1)
  if #names == 0 or call("ZLEXCOUNT", queue .. ":leased", "-", passed) + call("ZLEXCOUNT", queue .. ":delayed", "-", passed) > 0 then
    break
  elseif call("ZCOUNT", queue .. ":asleep", "-inf", text(now)) > 0 then
    break
  end
  local may_be_late = call("EXISTS", queue .. ":late") == 1
  if may_be_late and call("ZLEXCOUNT", queue .. ":late", "-", passed) > 0 then
    break
  end
  -- @include fast/laned_choice
  local served, order = choose(names, policy)
  if not order then
    break
  end
  local chosen = read_chosen(order, policy, may_be_late)
  -- The same for all of them, or the full rules decide.
  local tied = chosen and chosen.tied
  if not tied then
    break
  end
  local lease_us = (command.by_policy or not command.lease) and settings[3] or command.lease
  local ends_at = lease_us and now + lease_us or NEVER
  local claim_fields, claim_count = pack_claim(token, ends_at)
  if tied > 0 then
    claim_fields, claim_count = claim_fields .. cmsgpack.pack("tied", tied), claim_count + 1
  end
  local ids, packed_ids = chosen.ids, cmsgpack.pack("ids", chosen.ids)
  if not keep_answer(MAP_OF_2 .. packed_ids .. cmsgpack.pack("token", token)) then
    break
  end
  local ends, leased, kept = struct.pack(NUMBER, ends_at), {}, {}
  for i = 1, #ids do
    local n, fields = chosen.ns[i], cmsgpack.pack("lane", chosen.lanes[i])
    leased[2 * i - 1], leased[2 * i] = "0", ends .. n .. ids[i]
    kept[2 * i - 1], kept[2 * i] = ids[i] .. "\0", head_of(claim_count + 2) .. N .. n .. claim_fields .. fields
  end
  local told, count_told = packed_ids .. cmsgpack.pack("holder", command.holder), 2
  if chosen.has_groups then
    told, count_told = told .. cmsgpack.pack("groups", chosen.groups), 3
  end
  if #chosen.stale > 0 then
    -- @include fast/again
    local more, count_more = lease_stale(chosen.stale, chosen.later, chosen.found, kept, token, ends_at, tied, chosen.groups)
    if count_more > 0 then
      told, count_told = packed_ids .. cmsgpack.pack("holder", command.holder) .. more, 2 + count_more
    end
  end
  if call("ZREM", queue .. ":ready", unpack(chosen.ready)) < #ids then
    call("ZREM", queue .. ":ready", unpack(ready_members(chosen)))
  end
  call("ZREM", queue .. ":lanes", unpack(chosen.members))
  call("ZADD", queue .. ":leased", unpack(leased))
  call("HSET", messages, unpack(kept))
  local careful = policy.group_limit or policy.group_rate or policy.groups == "strict"
  for _, lane in ipairs(served) do
    local rate, limited = lanes.rate_of(lane, policy), lanes.limit_of(lane, policy)
    careful = careful or rate or limited
    lanes.take_turn(lane, token)
    lane.live = lane.live + (limited and lane.given or 0)
    if rate then
      lane.tat, lane.last = lanes.used(lane.tat, rate, lane.given), token
    end
    lanes.refresh(lane, policy, lane.line[lane.given + 1] and 0, token)
  end
  lanes.save(queue, served)
  local token_text = text(token)
  call("SET", counter_key, token_text)
  write_event(queue, token, token_text, "claimed", string.char(128 + count_told) .. told)
  give_hints({ WAKE .. "watch:queue:" .. command.queue }, { ALL })
  local count = #ids < 16 and string.char(144 + #ids) or "\220" .. struct.pack(">I2", #ids) -- how a packed list begins
  local claim = cmsgpack.pack("claim") .. string.char(128 + claim_count) .. claim_fields
  local answer = packed_ids .. claim .. cmsgpack.pack("messages") .. count .. table.concat(chosen.found)
  return careful and string.char(132) .. cmsgpack.pack("careful", true) .. answer or MAP_OF_3 .. answer
until true

--- Fast renew: one lease, still held.
-- @include fast/lease

repeat
  local name = command.names[1]
  local dict, key, id = name[1] ~= "" and name[1] or nil, name[2], LEASE_ID .. pack_text(name[3])
  local number, record, ends_at, floor = read_one(dict, key)
  if not command.lease or not number or not record or ends_at <= now or string.sub(record, -#id) ~= id then
    break
  end
  record = string.sub(record, 1, ENDS_AT - 1) .. struct.pack(NUMBER, now + command.lease) .. string.sub(record, HOLDER_AT)
  local answer = MAP_OF_1 .. "\166leases\145" .. record
  if not keep_answer(answer) then
    break
  end
  save_one(dict, key, record, command.lease)
  if not dict and (ends_at >= NEVER or not log_outlasts(record, now + command.lease)) then
    keep_log_for(LOG_S + math.ceil(command.lease / 1000000), floor)
  end
  return answer
until true

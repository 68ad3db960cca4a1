--- How a lease is kept: a packed map whose fields are always in one place, so that the fast paths read and change it without unpacking it.
--
-- Token, since and until, each of eight bytes; then "holder" and the holder; at the end "lease_id" and the id. What stands for a name with
-- capacity has five fields more, before that.
-- @include begin

local LEASE = ">c8I8c7I8c7I8"
local SINCE_AT, ENDS_AT, HOLDER_AT = 24, 39, 47 -- where these are in it
local LEASE_HEAD, SHARED_HEAD, SINCE, ENDS = "\133\165token\207", "\138\165token\207", "\165since\207", "\165until\207"
local LEASE_ID = "\168lease_id"

local function pack_text(words)
  if #words < 65536 then
    return "\218" .. struct.pack(">I2", #words) .. words
  end
  return "\219" .. struct.pack(">I4", #words) .. words
end

local function pack_lease(lease)
  local head, more = LEASE_HEAD, ""
  if lease.capacity then
    head = SHARED_HEAD
    more = cmsgpack.pack("capacity", lease.capacity, "used", lease.used, "waiting", lease.waiting, "last", lease.last)
      .. cmsgpack.pack("resized", lease.resized)
  end
  return struct.pack(LEASE, head, lease.token, SINCE, lease.since, ENDS, lease["until"])
    .. "\166holder"
    .. pack_text(lease.holder)
    .. more
    .. LEASE_ID
    .. pack_text(lease.lease_id)
end

--- What a member of Q:lanes has between the lane and n: the level from the top, and the rank, which may be below 0.
-- @include begin

local function lane_place(level, rank)
  return struct.pack(">I4BI8", TOP - level, rank < 0 and 0 or 1, rank < 0 and rank + 2 ^ 53 or rank)
end

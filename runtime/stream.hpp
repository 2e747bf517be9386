// Stream: the driver's stream handle, the same type as CUstream and cudaStream_t, without including their
// headers.
#pragma once

struct CUstream_st;

namespace jitsmith {

using Stream = CUstream_st*;  // nullptr is the default stream; the host target ignores it

}  // namespace jitsmith

// Shared memory of a block: exactly as long as asked for, so that AddressSanitizer sees an access past its
// end, and filled with 0xFF, a NaN in every floating-point format, so that reading before writing shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace jitsmith {

class SharedRegion {
 public:
  // The memory of a new block. Kept from the block before when the size is the same.
  void* renew(std::size_t bytes, std::size_t align) {
    if (memory_ == nullptr || bytes != bytes_) {
      void* memory = nullptr;
      if (posix_memalign(&memory, align < sizeof(void*) ? sizeof(void*) : align, bytes) != 0)
        throw std::bad_alloc();
      memory_.reset(memory);
      bytes_ = bytes;
    }
    poison();
    return memory_.get();
  }

  void poison() {
    if (bytes_ != 0) std::memset(memory_.get(), 0xff, bytes_);
  }

  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address),
               begin = reinterpret_cast<std::uintptr_t>(data());
    return at >= begin && at < begin + bytes_;
  }

  void* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace jitsmith

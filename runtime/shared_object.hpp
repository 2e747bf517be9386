// A shared object loaded from bytes in memory, unloaded when the object goes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace jitsmith {

class SharedObject {
 public:
  // `temp_directory` is used only where the system refuses to load from memory. Throws std::runtime_error
  // with the loader's reason.
  SharedObject(std::span<const std::byte> code, const std::string& temp_directory);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  // nullptr when there is no such symbol.
  void* symbol(const std::string& name) const;

 private:
  int descriptor_ = -1;
  void* handle_ = nullptr;
};

}  // namespace jitsmith

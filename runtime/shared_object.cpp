#include <jitsmith/runtime/shared_object.hpp>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

#include <fmt/format.h>

#include <jitsmith/cache/file_system.hpp>
#include <jitsmith/jit/temp_directory.hpp>

namespace jitsmith {
namespace {

std::string path_of(int descriptor) {
  return fmt::format("/proc/self/fd/{}", descriptor);
}

}  // namespace

SharedObject::SharedObject(std::span<const std::byte> code, const std::string& temp_directory)
    : descriptor_(memfd_create("jitsmith", MFD_CLOEXEC)) {
  if (descriptor_ >= 0 && real_file_system().write_full(descriptor_, code) == 0)
    handle_ = dlopen(path_of(descriptor_).c_str(), RTLD_NOW);
  if (handle_ != nullptr) return;

  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
  const TempDirectory directory(temp_directory);
  directory.write("kernel.so", {reinterpret_cast<const char*>(code.data()), code.size()});
  handle_ = dlopen((directory.path() + "/kernel.so").c_str(), RTLD_NOW);
  if (handle_ == nullptr) throw std::runtime_error(dlerror());
}

SharedObject::~SharedObject() {
  dlclose(handle_);
  if (descriptor_ < 0) return;
  // The loader knows an object by its path, here the descriptor's number, as long as it is loaded: the
  // descriptor stays open that long, or another kernel would be taken for this one. (Sanitizers read line
  // numbers through it, too.)
  if (void* still_loaded = dlopen(path_of(descriptor_).c_str(), RTLD_NOW | RTLD_NOLOAD))
    dlclose(still_loaded);
  else
    close(descriptor_);
}

void* SharedObject::symbol(const std::string& name) const {
  return dlsym(handle_, name.c_str());
}

}  // namespace jitsmith

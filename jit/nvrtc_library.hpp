// NvrtcLibrary: a loaded libnvrtc and its entry points. Nothing links against NVRTC, so that programs start
// on machines without it.
#pragma once

#include <string>
#include <vector>

#include <nvrtc.h>

namespace jitsmith {

// The functions that jitsmith calls, as nvrtc.h declares them.
struct NvrtcApi {
  decltype(&::nvrtcVersion) version = nullptr;
  decltype(&::nvrtcGetErrorString) error_string = nullptr;
  decltype(&::nvrtcCreateProgram) create_program = nullptr;
  decltype(&::nvrtcDestroyProgram) destroy_program = nullptr;
  decltype(&::nvrtcAddNameExpression) add_name_expression = nullptr;
  decltype(&::nvrtcCompileProgram) compile_program = nullptr;
  decltype(&::nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&::nvrtcGetProgramLog) log = nullptr;
  decltype(&::nvrtcGetLoweredName) lowered_name = nullptr;
  decltype(&::nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&::nvrtcGetCUBIN) cubin = nullptr;

  // Absent from old libraries: null then.
  decltype(&::nvrtcGetNumSupportedArchs) num_supported_archs = nullptr;
  decltype(&::nvrtcGetSupportedArchs) supported_archs = nullptr;
};

class NvrtcLibrary {
 public:
  // Loads the file `path`; it stays loaded until the process ends, because a compiler thread of its own may
  // outlive any moment of our choice. Throws CompileError that names the file and what is wrong with it.
  explicit NvrtcLibrary(const std::string& path);

  const NvrtcApi& api() const { return api_; }
  const std::string& path() const { return path_; }
  std::string version() const;  // "13.0"
  bool at_least(int major, int minor) const;

  // "sm_75", ..., "sm_90", "sm_90a", ...; empty when the library cannot tell.
  std::vector<std::string> supported_archs() const;

 private:
  std::string path_;
  NvrtcApi api_;
  int major_ = 0;
  int minor_ = 0;
};

}  // namespace jitsmith

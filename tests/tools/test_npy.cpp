#include <jitsmith/tools/npy.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>

#include "support/temp_dir.hpp"

namespace jitsmith {
namespace {

using namespace std::string_literals;

void store(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string little_endian(std::size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

std::string npy(const std::string& dictionary, const std::string& data, int major = 1) {
  return "\x93NUMPY"s + static_cast<char>(major) + '\0' +
         little_endian(dictionary.size(), major == 1 ? 2 : 4) + dictionary + data;
}

std::string dictionary(std::string_view descr, std::string_view shape,
                       std::string_view fortran_order = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, fortran_order, shape);
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
Array array_of(ElementType type, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  Array array = Array::zeros(type, std::move(shape));
  REQUIRE(array.bytes.size() == values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

bool same(const Array& a, const Array& b) {
  return a.type == b.type && a.shape == b.shape && a.bytes == b.bytes;
}

class Fixture {
 protected:
  Array read(const std::string& bytes) {
    store(path_, bytes);
    return read_npy(path_);
  }

  std::string written(const Array& array) {
    write_npy(path_, array);
    return load(path_);
  }

  test::TempDir dir_;
  std::string path_ = dir_ / "a.npy";
};

// numpy.save("a.npy", numpy.array([[1, 2, 3], [4, 5, 6]], "<i4")), of NumPy 2.4
const std::string k_golden =
    "\x93NUMPY\x01\x00v\x00{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"s +
    std::string(58, ' ') + "\n" + "\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0"s;

}  // namespace

TEST_SUITE_BEGIN("npy");

TEST_CASE_FIXTURE(Fixture, "NumPy's own bytes are read and written") {
  const Array array = array_of<std::int32_t>(ElementType::i32, {2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(same(read(k_golden), array));
  CHECK(written(array) == k_golden);
}

TEST_CASE_FIXTURE(Fixture, "each element type survives a round trip") {
  const Array arrays[] = {array_of<std::uint16_t>(ElementType::bf16, {2}, {0x3f80, 0xffff}),
                          array_of<float>(ElementType::f32, {2}, {1.5f, -0.f}),
                          array_of<std::uint8_t>(ElementType::u8, {3}, {0, 1, 255}),
                          array_of<std::int32_t>(ElementType::i32, {1}, {-2}),
                          array_of<std::int64_t>(ElementType::i64, {1}, {1ll << 62})};
  const std::string_view descrs[] = {"'<u2'", "'<f4'", "'|u1'", "'<i4'", "'<i8'"};
  for (std::size_t i = 0; i < std::size(arrays); ++i) {
    CHECK(written(arrays[i]).find(descrs[i]) != std::string::npos);
    CHECK(same(read_npy(path_), arrays[i]));
  }
}

TEST_CASE_FIXTURE(Fixture, "each shape survives a round trip, its data at a multiple of 64") {
  std::vector<std::int64_t> deep(40, 1);
  const std::vector<std::vector<std::int64_t>> shapes{{}, {0}, {5}, {2, 0, 3}, {2, 3, 4}, {1234, 1}, deep};
  for (const auto& shape : shapes) {
    Array array = Array::zeros(ElementType::u8, shape);
    for (std::size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(i);
    const std::string file = written(array);
    CHECK((file.size() - array.bytes.size()) % 64 == 0);
    CHECK(file[file.size() - array.bytes.size() - 1] == '\n');
    CHECK(same(read_npy(path_), array));
  }
}

TEST_CASE_FIXTURE(Fixture, "formats 2.0 and 3.0 are read") {
  const Array array = array_of<std::uint8_t>(ElementType::u8, {2}, {7, 8});
  for (const int major : {1, 2, 3}) CHECK(same(read(npy(dictionary("|u1", "(2,)"), "\7\10", major)), array));
}

TEST_CASE_FIXTURE(Fixture, "the header is read as Python would") {
  const Array array = array_of<std::uint8_t>(ElementType::u8, {1, 2}, {7, 8});
  for (const char* text : {R"({"shape":(1,2),"fortran_order":False,"descr":"|u1"})",
                           " { 'shape' : ( 1 , 2 , ) ,'fortran_order' : False, 'descr': '|u1' }  \n"})
    CHECK(same(read(npy(text, "\7\10")), array));
}

TEST_CASE_FIXTURE(Fixture, "Fortran order becomes C order") {
  CHECK(same(read(npy(dictionary("<i4", "(2, 3)", "True"), bytes_of<std::int32_t>({1, 4, 2, 5, 3, 6}))),
             array_of<std::int32_t>(ElementType::i32, {2, 3}, {1, 2, 3, 4, 5, 6})));
  // Element [i, j, k] of shape (2, 3, 2) is 100 i + 10 j + k.
  CHECK(same(read(npy(dictionary("|u1", "(2, 3, 2)", "True"),
                      bytes_of<std::uint8_t>({0, 100, 10, 110, 20, 120, 1, 101, 11, 111, 21, 121}))),
             array_of<std::uint8_t>(ElementType::u8, {2, 3, 2},
                                    {0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121})));
  CHECK(same(read(npy(dictionary("|u1", "()", "True"), "x")), array_of<char>(ElementType::u8, {}, {'x'})));
  CHECK(same(read(npy(dictionary("<i8", "(3, 0)", "True"), "")), Array::zeros(ElementType::i64, {3, 0})));
}

TEST_CASE_FIXTURE(Fixture, "bool becomes 0 or 1") {
  CHECK(same(read(npy(dictionary("|b1", "(3,)"), "\0\1\2"s)),
             array_of<std::uint8_t>(ElementType::u8, {3}, {0, 1, 1})));
}

TEST_CASE_FIXTURE(Fixture, "other dtypes are refused with what to do") {
  for (const auto& [descr, says] :
       {std::pair{"<f2", "convert with .astype to float32"},
        std::pair{"<f8", "convert with .astype to float32"}, std::pair{"<u4", "convert with .astype"},
        std::pair{">f4", "big-endian"}, std::pair{"|O", "convert"}, std::pair{"|V2", ".view(numpy.uint16)"},
        std::pair{"<V1", ".view(numpy.uint8)"}, std::pair{"", "convert"}}) {
    store(path_, npy(dictionary(descr, "(1,)"), "12345678"));
    CHECK_THROWS_WITH_AS(read_npy(path_), doctest::Contains(says), InvalidRequest);
    CHECK_THROWS_WITH_AS(read_npy(path_), doctest::Contains(fmt::format("'{}'", path_).c_str()),
                         InvalidRequest);
    CHECK_THROWS_WITH_AS(read_npy(path_), doctest::Contains(fmt::format("dtype \"{}\"", descr).c_str()),
                         InvalidRequest);
  }
}

TEST_CASE_FIXTURE(Fixture, "a wrong file is refused with the rule") {
  const std::string good = dictionary("|u1", "(2,)");
  const std::pair<std::string, const char*> cases[] = {
      {"", "the magic has 0 of 8 bytes; the file is truncated"},
      {"PK\3\4 a zip file", "no .npy file"},
      {npy(good, "12", 4), "format 4.0 is unknown"},
      {"\x93NUMPY\1\1\0\0"s, "format 1.1 is unknown"},
      {"\x93NUMPY\1\0v"s, "the header length has 1 of 2 bytes"},
      {npy(good, "").substr(0, 40), "the header has 30 of"},
      {npy(std::string(10'001, ' '), ""), "its header has 10001 bytes; at most 10000"},
      {"\x93NUMPY\2\0\xff\xff\xff\xff"s, "its header has 4294967295 bytes"},
      {npy(good, "1"), "the array has 1 of 2 bytes; the file is truncated"},
      {npy(good, "123"), "it has 1 bytes after the array"},
      {npy(dictionary("|u1", "(-1,)"), ""), "the extent -1; extents are not negative"},
      {npy(dictionary("<i8", "(4294967296, 4294967296)"), ""), "larger than any memory"},
      {npy(dictionary("<i8", "(1152921504606846976,)"), ""), "larger than any memory"},
      {npy(dictionary("|u1", "(0, 4294967296, 4294967296)"), ""), "larger than any memory"},
      {npy(dictionary("|u1", "(9223372036854775807,)"), ""), "the array has 0 of 9223372036854775807 bytes"},
      {npy(dictionary("|u1", "(9223372036854775808,)"), ""), "malformed"},
      {npy(dictionary("|u1", "(2)"), "12"), "malformed at \")"},
      {npy(dictionary("|u1", "(,)"), "1"), "malformed"},
      {npy(dictionary("|u1", "(1 2)"), "12"), "malformed"},
      {npy(dictionary("|u1", "2"), "12"), "malformed"},
      {npy(dictionary("|u1", "(2,)", "0"), "12"), "malformed at \"0"},
      {npy(good + "x", "12"), "malformed at \"x"},
      {npy(good + '\0', "12"), "malformed"},
      {npy("", ""), "malformed"},
      {npy("{'descr': '|u1", "12"), "malformed at \"'|u1"},
      {npy("{'descr': '|u1' 'shape': (2,)}", "12"), "malformed"},
      {npy("{'descr': '|u1', 'shape': (2,)}", "12"), "lacks one of descr, fortran_order and shape"},
      {npy("{'descr': '|u1', 'descr': '|u1'}", "12"), "key \"descr\" is unknown or there twice"},
      {npy("{'order\n': 1}", "12"), "key \"order\\n\" is unknown"},
      {npy("{'descr': [('a', '<f4')]}", "12"), "structured"},
  };
  for (const auto& [bytes, says] : cases) {
    store(path_, bytes);
    CHECK_THROWS_WITH_AS(read_npy(path_), doctest::Contains(says), InvalidRequest);
  }
}

TEST_CASE_FIXTURE(Fixture, "a path that is no file is refused") {
  CHECK_THROWS_WITH_AS(read_npy(dir_ / "absent"), doctest::Contains("No such file"), InvalidRequest);
  CHECK_THROWS_WITH_AS(read_npy(dir_ / ""), doctest::Contains("no regular file"), InvalidRequest);
}

TEST_CASE_FIXTURE(Fixture, "a write replaces the file, or fails and leaves nothing") {
  const Array array = Array::zeros(ElementType::f32, {3});
  store(path_, "old");
  write_npy(path_, array);
  CHECK(same(read_npy(path_), array));

  std::filesystem::create_directory(dir_ / "taken");  // a rename can't replace it
  CHECK_THROWS_AS(write_npy(dir_ / "taken", array), InvalidRequest);
  CHECK_THROWS_WITH_AS(write_npy(dir_ / "absent/a.npy", array), doctest::Contains("No such file"),
                       InvalidRequest);
  CHECK_THROWS_WITH_AS(write_npy(dir_ / "b.npy", {.shape = {3}}),
                       doctest::Contains("0 bytes are not a f32 [3]"), InvalidRequest);
  const Array deep = Array::zeros(ElementType::u8, std::vector<std::int64_t>(4'000, 1));
  CHECK_THROWS_WITH_AS(write_npy(dir_ / "b.npy", deep), doctest::Contains("4000 dimensions"), InvalidRequest);
  CHECK(std::distance(std::filesystem::directory_iterator(dir_.path()), {}) == 2);
}

TEST_CASE_FIXTURE(Fixture, "a damaged file is refused or is another array, never more") {
  std::minstd_rand random(1);
  const std::string good =
      npy(dictionary("<i4", "(2, 3)", "True"), bytes_of<std::int32_t>({1, 4, 2, 5, 3, 6}));
  int refused = 0;
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes = good;
    for (auto flips = 1 + random() % 2; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1u << random() % 8);
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    try {
      const Array array = read(bytes);
      CHECK(array.bytes.size() == static_cast<std::size_t>(array.count()) * size_of(array.type));
    } catch (const InvalidRequest& error) {
      ++refused;
      CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
    }
  }
  CHECK(refused > 800);
}

TEST_SUITE_END();

}  // namespace jitsmith

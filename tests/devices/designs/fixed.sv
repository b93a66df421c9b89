// Two products of E2M1 and an addend of E3M1 with infinities and NaN, rounded once to that: all of them are written as
// numbers of eighths, of both signs, which are multiplied and added as such.
module fixed (
  input  [7:0] a, b,
  input  [4:0] c,
  output [4:0] d
);
  function signed [15:0] halves(input [3:0] x);
    reg [15:0] size;
    begin
      size = {|x[2:1], x[0]} << (|x[2:1] ? x[2:1] - 1 : 0);
      halves = x[3] ? -size : size;
    end
  endfunction
  function signed [15:0] eighths(input [4:0] x);
    reg [15:0] size;
    begin
      size = {|x[3:1], x[0]} << (|x[3:1] ? x[3:1] - 1 : 0);
      eighths = x[4] ? -size : size;
    end
  endfunction

  reg signed [15:0] sum;
  reg zeros;  // whether all are zeros below zero
  integer i;
  always @* begin
    sum = eighths(c);
    zeros = c == 5'b10000;
    for (i = 0; i < 2; i = i + 1) begin
      sum = sum + ((halves(a[4*i +: 4]) * halves(b[4*i +: 4])) <<< 1);
      zeros = zeros & (a[4*i+3] ^ b[4*i+3]) & (a[4*i +: 3] == 0 | b[4*i +: 3] == 0);
    end
  end

  // to nearest, ties to even
  wire [15:0] size = sum < 0 ? -sum : sum;
  reg [3:0] highest;
  integer k;
  always @* begin
    highest = 0;
    for (k = 0; k < 16; k = k + 1) if (size[k]) highest = k;
  end
  wire [3:0] places = highest > 1 ? highest - 1 : 0;
  wire [15:0] whole = size >> places;
  wire half = places == 0 ? 0 : size[places-1];
  wire rest = places < 2 ? 0 : |(size & ((16'd1 << (places - 1)) - 1));
  wire [2:0] kept = whole[2:0] + (half & (rest | whole[0]));
  wire [5:0] number = kept[2] ? {places + 5'd2, 1'b0} : kept[1] ? {places + 5'd1, kept[0]} : {5'b0, kept[0]};
  assign d = &c[3:1] & c[0] ? 5'b01111
           : &c[3:1] ? c
           : {sum < 0 | zeros, number >= 14 ? 4'b1110 : number[3:0]};
endmodule

/* A yardstick, no part of the program: the T-FDPA of Hopper, f16, K = 16, for finite inputs that are decoded already,
   written by hand by a reviewer of this project. Same licence as the project. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define K 16
#define N 512
static int32_t sb[K][N] __attribute__((aligned(64))), eb[K][N] __attribute__((aligned(64)));
static int32_t c[N] __attribute__((aligned(64))); static int32_t d[N] __attribute__((aligned(64)));
__attribute__((noinline)) void row(const int32_t*sa,const int32_t*ea){
  for(int j=0;j<N;j++){
    int32_t cb=c[j]; int32_t ce=(cb>>23)&255; int32_t cs=(cb&0x7fffff)|(ce?1<<23:0); int32_t cex=(ce?ce:1)-127; if(!(cb&0x7fffffff))cex=-133;
    int32_t em=cex;
#pragma GCC unroll 16
    for(int k=0;k<K;k++){int32_t e=ea[k]+eb[k][j]; em=e>em?e:em;}
    int32_t sum=0;
#pragma GCC unroll 16
    for(int k=0;k<K;k++){
      int32_t p=sa[k]*sb[k][j]; int32_t sg=p>>31; uint32_t m=(uint32_t)((p^sg)-sg)<<5; uint32_t sh=em-(ea[k]+eb[k][j]); sh=sh>31?31:sh;
      m>>=sh; sum+=(int32_t)((m^sg)-sg); }
    uint32_t csh=em-cex; csh=csh>31?31:csh; int32_t cm=(int32_t)(((uint32_t)cs<<2)>>csh); cm=cb<0?-cm:cm;
    // total of 33 bits: halves
    int64_t t=(int64_t)sum+cm; int64_t sg=t>>63; uint64_t m=(uint64_t)((t^sg)-sg);
    int lz=__builtin_clzll(m|1); int msb=63-lz; int32_t e=em+msb-25;
    int64_t s2=msb-23; uint64_t q=s2>=0? m>>s2 : m<<-s2;
    int32_t ef=e+127; uint32_t r=((uint32_t)ef<<23)+((uint32_t)q&0x7fffff);
    if(ef<=0){ r=(uint32_t)(q>>((1-ef)>31?31:(1-ef))); }
    if(!m) r=0; d[j]=(int32_t)(r|((uint32_t)sg&0x80000000u));
  }}
int main(){ int32_t sa[K],ea[K]; srand(1);
 for(int k=0;k<K;k++){sa[k]=(1024|rand()%1024)*(rand()&1?1:-1);ea[k]=rand()%8-4; for(int j=0;j<N;j++){sb[k][j]=(1024|rand()%1024)*(rand()&1?1:-1);eb[k][j]=rand()%8-4;}}
 for(int j=0;j<N;j++)c[j]=0x3f800000+rand()%1000000;
 struct timespec a,b; double best=0; for(int r=0;r<20;r++){clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&a); for(int i=0;i<2000;i++){sa[0]^=1;row(sa,ea);} clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&b); double s=(b.tv_sec-a.tv_sec)+1e-9*(b.tv_nsec-a.tv_nsec); double v=2000.0*N/s; if(v>best)best=v;}
 printf("%.1f M outputs/s  (%x)\n",best/1e6,d[5]); }
